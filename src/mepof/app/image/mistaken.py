"""What people have in place of a tarball, and how one is made of it."""

from __future__ import annotations

from pathlib import Path

from mepof import magic
from mepof.magic import Magic

_MOUNT = "as root: mount -o loop,ro {file} /mnt && tar -C /mnt -cf {tar} ."
_CPIO = "bsdtar -cf {tar} @{file}, of libarchive-tools"
_DISK = "virt-tar-out -a {file} / {tar}, of guestfs-tools"

# What it is, and the command. Sources: mepof.magic; of the others, Linux's fs/xfs, fs/btrfs and
# Documentation/driver-api/early-userspace/buffer-format.rst, QEMU's docs/interop/qcow2.txt.
_KNOWN: tuple[tuple[Magic, tuple[str, str]], ...] = (
    (magic.SQUASHFS, ("a squashfs image", "sqfs2tar {file} > {tar}, of squashfs-tools-ng")),
    (magic.EXT4, ("an ext4 image", _MOUNT)),
    (magic.EROFS, ("an EROFS image", _MOUNT)),
    (magic.F2FS, ("an F2FS image", _MOUNT)),
    ((0, b"XFSB"), ("an XFS image", _MOUNT)),
    ((0x10040, b"_BHRfS_M"), ("a Btrfs image", _MOUNT)),
    ((0, b"070701"), ("a cpio archive", _CPIO)),
    ((0, b"070702"), ("a cpio archive", _CPIO)),
    ((0, b"QFI\xfb"), ("a disk of a virtual machine", _DISK)),
    (magic.GPT, ("a disk with partitions", _DISK)),
    ((510, b"\x55\xaa"), ("a disk with partitions", _DISK)),
    (magic.LZ4, ("compressed by lz4", "unlz4 {file} {tar}")),
    (magic.ZIP, ("a zip archive", "unpack it, and pack its files: tar -C DIR -cf {tar} .")),
)
_HEAD_BYTES = max(offset + len(there) for (offset, there), _ in _KNOWN)


def mistaken_for(path: Path, content: Path) -> tuple[str, str] | None:
    """What a file that is not a tarball is, in words, and what makes a tarball of it.

    Args:
        path: what the user named.
        content: the same, decompressed.
    """
    with content.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    known = None if magic.has(head, magic.TAR) else magic.first(head, _KNOWN)
    if known is None:
        return None
    what, command = known
    tar = path.with_name(f"{path.name.partition('.')[0]}.tar")
    return what, f"{command.format(file=path, tar=tar)}; and name {tar.name}"
