"""What people have in place of a tarball, and how one is made of it."""

from __future__ import annotations

from pathlib import Path

_MOUNT = "as root: mount -o loop,ro {file} /mnt && tar -C /mnt -cf {tar} ."
_CPIO = "bsdtar -cf {tar} @{file}, of libarchive-tools"
_USTAR = (257, b"ustar")  # of a tar archive
_DISK = "virt-tar-out -a {file} / {tar}, of guestfs-tools"

# Offset and bytes there; what it is, and the command. Sources: Linux's Documentation/filesystems
# (squashfs, erofs, ext4) and Documentation/driver-api/early-userspace/buffer-format.rst, QEMU's
# docs/interop/qcow2.txt, the UEFI specification, the LZ4 frame format, zip's APPNOTE.
_KNOWN: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"hsqs", "a squashfs image", "sqfs2tar {file} > {tar}, of squashfs-tools-ng"),
    (0x438, b"\x53\xef", "an ext4 image", _MOUNT),
    (0x400, b"\xe2\xe1\xf5\xe0", "an EROFS image", _MOUNT),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS image", _MOUNT),
    (0, b"XFSB", "an XFS image", _MOUNT),
    (0x10040, b"_BHRfS_M", "a Btrfs image", _MOUNT),
    (0, b"070701", "a cpio archive", _CPIO),
    (0, b"070702", "a cpio archive", _CPIO),
    (0, b"QFI\xfb", "a disk of a virtual machine", _DISK),
    (512, b"EFI PART", "a disk with partitions", _DISK),
    (510, b"\x55\xaa", "a disk with partitions", _DISK),
    (0, b"\x04\x22\x4d\x18", "compressed by lz4", "unlz4 {file} {tar}"),
    (0, b"PK\x03\x04", "a zip archive", "unpack it, and pack its files: tar -C DIR -cf {tar} ."),
)


def mistaken_for(path: Path, content: Path) -> tuple[str, str] | None:
    """What a file that is not a tarball is, in words, and what makes a tarball of it.

    Args:
        path: what the user named.
        content: the same, decompressed.
    """
    tar = path.with_name(f"{path.name.partition('.')[0]}.tar")
    with content.open("rb") as file:
        file.seek(_USTAR[0])
        if file.read(len(_USTAR[1])) == _USTAR[1]:
            return None
        for offset, magic, what, command in _KNOWN:
            file.seek(offset)
            if file.read(len(magic)) == magic:
                return what, f"{command.format(file=path, tar=tar)}; and name {tar.name}"
    return None
