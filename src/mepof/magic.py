"""The bytes by which files of many kinds are told apart.

Sources: RFC 1952 (gzip) and 8878 (zstd), the formats of xz, bzip2 and lz4, POSIX's ustar, zip's
APPNOTE, the UEFI Specification (GPT); Linux's fs/ext4/ext4.h, fs/erofs/erofs_fs.h,
include/linux/f2fs_fs.h, fs/squashfs/squashfs_fs.h.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Said = TypeVar("Said")

#: An offset, and the bytes there.
Magic = tuple[int, bytes]

GZIP, XZ, BZIP2, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh", b"\x28\xb5\x2f\xfd"
LZ4: Magic = (0, b"\x04\x22\x4d\x18")
ZIP: Magic = (0, b"PK\x03\x04")
TAR: Magic = (257, b"ustar")
EXT4: Magic = (1080, b"\x53\xef")
EROFS: Magic = (1024, b"\xe2\xe1\xf5\xe0")
F2FS: Magic = (1024, b"\x10\x20\xf5\xf2")
SQUASHFS: Magic = (0, b"hsqs")
GPT: Magic = (512, b"EFI PART")


def has(head: bytes, magic: Magic) -> bool:
    """Whether a file that begins with these bytes is of a kind."""
    return head.startswith(magic[1], magic[0])


def first(head: bytes, table: Iterable[tuple[Magic, Said]]) -> Said | None:
    """What a table says of the first kind that a file is of; None if it is of none."""
    return next((said for magic, said in table if has(head, magic)), None)
