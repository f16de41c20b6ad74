"""What people have in place of a boot image or of a part of one, and how the image is got out."""

from __future__ import annotations

from mepof import magic
from mepof.bootimg.compression import Damaged, decode, recognise
from mepof.bootimg.layout import BOOT_MAGIC, VENDOR_MAGIC
from mepof.kernel.image import HEADER_BYTES
from mepof.kernel.image import recognise as recognise_image
from mepof.magic import Magic

_DEFAULT = "name boot.img, init_boot.img or vendor_boot.img"
_UNPACK = "unpack it, and the zip or payload.bin in it, until there is a boot.img"
_KERNEL = "name the phone's boot.img, and the kernel with `mepof bootimg pack --kernel`"
_RAMDISK = "name the phone's boot.img, and the ramdisk with `mepof bootimg pack --ramdisk`"
_ELF = "name the phone's boot.img, and with --kernel what a build makes for it (Image, zImage)"
_BESIDE = "boot.img is a partition beside it: take it from the factory image or the OTA's payload"
_SHOWN = "`mepof bootimg show` reads it; to unpack or pack, name a boot image"
_UBOOT = (
    "mepof packs Android's images only: list it with `dumpimage -l`, and make one of the new "
    "kernel with `mkimage`"
)
_UEFI = "mepof packs Android's images only: install the kernel as a package (`set package`)"

# Offset and bytes there; what it is, and what to do. Sources: zip's APPNOTE, 7-Zip's 7zFormat.txt,
# POSIX's ustar, the UEFI Specification (GPT, PE) and U-Boot's include/image.h; AOSP's
# system/update_engine/payload_metadata.h, system/core/libsparse/sparse_format.h,
# system/core/fs_mgr/liblp/include/liblp/metadata_format.h (at 0 in super_empty.img),
# libavb's avb_vbmeta_image.h and libufdt's dt_table.h; vboot_reference's keyblock, Sony's mkelf;
# Linux's fs/ext4/ext4.h, fs/erofs/erofs_fs.h, include/linux/f2fs_fs.h, fs/squashfs/squashfs_fs.h
# and Documentation/driver-api/early-userspace/buffer-format.rst.
_KNOWN: tuple[tuple[Magic, tuple[str, str]], ...] = (
    ((0, BOOT_MAGIC), ("a boot image", _SHOWN)),
    ((0, VENDOR_MAGIC), ("a boot image", _SHOWN)),
    (magic.ZIP, ("a zip archive", _UNPACK)),
    ((0, b"7z\xbc\xaf\x27\x1c"), ("a 7z archive", _UNPACK)),
    ((0, b"CrAU"), ("the payload of an OTA", "extract its partition `boot` with a payload dumper")),
    ((0, b"\x3a\xff\x26\xed"), ("a sparse image", "convert it: `simg2img FILE boot.img`")),
    (magic.TAR, ("a tar archive", "unpack it: `tar -xf FILE`, and `lz4 -d` a boot.img.lz4 in it")),
    (
        (0, b"DHTB"),
        ("a file signed for Unisoc", "remove the 512 bytes of DHTB before the boot image"),
    ),
    ((4096, b"gDla"), ("super.img (dynamic partitions)", _BESIDE)),
    ((0, b"gDla"), ("super_empty.img (dynamic partitions)", _BESIDE)),
    ((0, b"AVB0"), ("a vbmeta image", _SHOWN)),
    ((0, b"\xd7\xb7\xab\x1e"), ("a dtbo image", _SHOWN)),
    ((0, b"\x27\x05\x19\x56"), ("a uImage of U-Boot", _UBOOT)),
    (
        (0, b"\x7fELF\1\1\1\x61"),
        ("a boot image of Sony's, an ELF file", "unpack it with `unpackelf`"),
    ),
    ((0, b"\x7fELF"), ("an ELF file", _ELF)),
    ((0, b"CHROMEOS"), ("a kernel partition of ChromeOS", "make a new one with `vbutil_kernel`")),
    ((0, b"07070"), ("a ramdisk without a boot image", _RAMDISK)),
    (magic.EXT4, ("a file system (ext4)", _BESIDE)),
    (magic.EROFS, ("a file system (erofs)", _BESIDE)),
    (magic.F2FS, ("a file system (f2fs)", _BESIDE)),
    (magic.SQUASHFS, ("a file system (squashfs)", _BESIDE)),
    ((54, b"FAT"), ("a file system (FAT)", _BESIDE)),
    ((82, b"FAT32"), ("a file system (FAT)", _BESIDE)),
    (magic.GPT, ("a whole disk", "copy its partition `boot`, which `fdisk -l FILE` lists")),
)
_TREE, _IMAGES = b"\xd0\x0d\xfe\xed", b"\0\0\0\x01images\0"
_SECTOR = 512


def mistaken(data: bytes | memoryview) -> tuple[str, str]:
    """What a file is that is not the boot image, or the part of one, that is wanted.

    Args:
        data: the file, or its first :data:`HEADER_BYTES` or more.

    Returns:
        What the file is, in words, empty if that is not known; and the remedy.
    """
    view = memoryview(data)
    head = bytes(view[:HEADER_BYTES])
    if not head:
        return "an empty file", _DEFAULT
    kind = recognise(view)
    if kind is not None:
        try:
            inside = decode(view, HEADER_BYTES)
        except Damaged:
            inside = None
        head = inside.content if inside else b""
        what, remedy = _begun(head)
        if what.startswith(_ALONE):
            return f"{what}, compressed with {kind.name}", remedy
        what = what or "data"
        program = {"lz4-legacy": "lz4", "lzo": "lzop"}.get(kind.name, kind.name)
        return f"{what} compressed with {kind.name}", f"decompress it: `{program} -d`"
    found = _begun(head)
    return found if found[0] else _behind(view)


_ALONE = ("a kernel", "a ramdisk", "an ELF file")


def _begun(head: bytes) -> tuple[str, str]:
    """What begins so, and the remedy; empty words if that is not known."""
    if known := magic.first(head, _KNOWN):
        return known
    if head.startswith(_TREE):
        if _IMAGES in head:
            return "a FIT image of U-Boot", _UBOOT
        return "a device tree", "name the phone's boot.img, and the device tree with --dtb"
    if recognise_image(head):
        return "a kernel without a boot image", _KERNEL
    if head.startswith(b"MZ"):
        return "a program of UEFI, such as a unified kernel image", _UEFI
    return "", _DEFAULT


def _behind(view: memoryview) -> tuple[str, str]:
    """Whether a boot image begins further behind, as with a vendor's header before it."""
    for at in range(_SECTOR, min(len(view), HEADER_BYTES), _SECTOR):
        if view[at : at + len(BOOT_MAGIC)] in (BOOT_MAGIC, VENDOR_MAGIC):
            what = f"a file whose boot image begins at byte {at}"
            return what, f"remove what is before it: `tail -c +{at + 1} FILE > boot.img`"
    return "", _DEFAULT
