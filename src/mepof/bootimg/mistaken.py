"""What people have in place of a boot image, and how the image is got out of it."""

from __future__ import annotations

from mepof.bootimg.compression import recognise

_DEFAULT = "name boot.img, init_boot.img or vendor_boot.img"
_ZIP = "unpack it, and the zip or payload.bin in it, until there is a boot.img"
_KERNEL = "name the phone's boot.img, and the kernel with `mepof bootimg pack --kernel`"

# Offset and bytes there; what it is, and what to do. Sources: zip's APPNOTE, AOSP's
# system/update_engine/payload_metadata.h and system/core/libsparse/sparse_format.h, POSIX's ustar,
# Linux's Documentation/arch/arm64/booting.rst and Documentation/arch/x86/boot.rst.
_KNOWN: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"PK\x03\x04", "a zip archive", _ZIP),
    (0, b"CrAU", "the payload of an OTA", "extract its partition `boot` with a payload dumper"),
    (0, b"\x3a\xff\x26\xed", "a sparse image", "convert it: `simg2img FILE boot.img`"),
    (257, b"ustar", "a tar archive", "unpack it: `tar -xf FILE`"),
    (0, b"DHTB", "signed for Unisoc", "remove the 512 bytes of DHTB before the boot image"),
    (56, b"ARM\x64", "a kernel without a boot image", _KERNEL),
    (514, b"HdrS", "a kernel without a boot image", _KERNEL),
)


def mistaken(data: bytes | memoryview) -> tuple[str, str]:
    """What a file that is not a boot image is.

    Args:
        data: the beginning of the file, 518 bytes or more if it has as many.

    Returns:
        What the file is, in words, empty if that is not known; and the remedy.
    """
    view = memoryview(data)
    for offset, magic, what, remedy in _KNOWN:
        if view[offset : offset + len(magic)] == magic:
            return what, remedy
    kind = recognise(view)
    if kind is not None:
        return f"data compressed with {kind.name}", "decompress it"
    return "", _DEFAULT
