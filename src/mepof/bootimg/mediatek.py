"""The header that boot loaders of MediaTek's expect before kernels, ramdisks and device trees.

512 bytes: magic, size of what follows, name, and a rest that is filled with ones
(``tools/mkimage`` of MediaTek's source).
"""

from __future__ import annotations

import struct

from mepof.bootimg.image import Bytes

_HEADER = struct.Struct("<II32s472s")
_MAGIC = 0x58881688


def split(section: Bytes) -> tuple[bytes, memoryview]:
    """The header that a section begins with, empty if there is none, and what follows it."""
    view = memoryview(section)
    if len(view) >= _HEADER.size:
        magic, size, *_ = _HEADER.unpack_from(view)
        if magic == _MAGIC and size == len(view) - _HEADER.size:
            return bytes(view[: _HEADER.size]), view[_HEADER.size :]
    return b"", view


def joined(header: bytes, *parts: Bytes) -> bytes:
    """A section of its parts.

    Args:
        header: MediaTek's; its size field is set to that of the parts. Empty if there is none.
    """
    body = b"".join(parts)
    if len(header) != _HEADER.size:
        return body
    magic, _, name, rest = _HEADER.unpack(header)
    return _HEADER.pack(magic, len(body), name, rest) + body


def under_same(former: Bytes, new: Bytes) -> Bytes:
    """What takes the place of a section: under its header, unless it brings one."""
    header, _ = split(former)
    given, _ = split(new)
    return joined(header, new) if header and not given else new
