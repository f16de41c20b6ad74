"""Initramfs images: cpio archives in the format ``newc`` that the kernel unpacks.

The kernel unpacks several archives one after another, so the requests of a boot follow
the image that all boots share (Documentation/driver-api/early-userspace/
buffer-format.rst in the kernel's tree).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_DIRECTORY = 0o040000
_FILE = 0o100000
_DEVICE = 0o020000
_LINK = 0o120000


@dataclass(frozen=True)
class Entry:
    """A file, or a directory where ``data`` is None, or a character device with ``device``, or a
    symbolic link to ``link``; ``owner`` is a user and a group."""

    path: str
    mode: int
    data: bytes | None = None
    device: tuple[int, int] | None = None
    link: str | None = None
    owner: tuple[int, int] = (0, 0)


def tree(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in an order in which the kernel can unpack them, sorted: all directories, also those
    that only lead to an entry, and then the rest."""
    given = {entry.path: entry for entry in entries}
    parents = {str(p) for path in given for p in PurePosixPath(path).parents if p.name}
    whole = {**{path: Entry(path, 0o755) for path in parents}, **given}
    return sorted(whole.values(), key=lambda entry: (not _is_directory(entry), entry.path))


def _is_directory(entry: Entry) -> bool:
    return entry.data is None and entry.device is None and entry.link is None


def archive(entries: Iterable[Entry]) -> bytes:
    """A newc archive; the parent directories of an entry must be entries before it."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, 1)]
    parts.append(_record(0, Entry("TRAILER!!!", 0, b"")))
    image = b"".join(parts)
    return image + b"\0" * (-len(image) % 512)


def _record(number: int, entry: Entry) -> bytes:
    if entry.device is not None:
        kind = _DEVICE
    elif entry.link is not None:
        kind = _LINK
    elif entry.data is None:
        kind = _DIRECTORY
    else:
        kind = _FILE if entry.mode else 0
    name = entry.path.encode() + b"\0"
    data = entry.data or (entry.link or "").encode()
    major, minor = entry.device or (0, 0)
    fields = (
        number,  # inode
        kind | entry.mode,
        *entry.owner,
        2 if kind == _DIRECTORY else 1,  # links
        0,  # modification time: always the epoch
        len(data),
        0,
        0,
        major,
        minor,
        len(name),
        0,  # checksum, unused in newc
    )
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
