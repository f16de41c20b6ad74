"""Device trees behind a kernel, and the tables that hold many of them.

The header of a flattened device tree is that of the Devicetree Specification, chapter 5.2; the
table of a dtbo partition that of
https://source.android.com/docs/core/architecture/dto/partitions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mepof.bootimg.image import Bytes, without_zeros

_MAGIC = b"\xd0\x0d\xfe\xed"
_HEADER = struct.Struct(">10I")
_BEGIN_NODE = b"\0\0\0\x01"
_TABLE_MAGIC = b"\xd7\xb7\xab\x1e"
_TABLE = struct.Struct(">8I")

MAX_TREES = 4096
_STEP = 1 << 20


@dataclass(frozen=True)
class Appended:
    """Device trees that end a file.

    Attributes:
        at: where the first one begins; the file's size if there is none.
        sizes: of each, in order.
    """

    at: int
    sizes: tuple[int, ...]


def tree_size(data: Bytes, at: int = 0) -> int | None:
    """Bytes of the device tree at an offset; None if there is none, or not all of it."""
    view = memoryview(data)
    if at + _HEADER.size > len(view) or view[at : at + 4] != _MAGIC:
        return None
    fields: tuple[int, ...] = _HEADER.unpack_from(view, at)
    _, total, structure, strings, reserved, version, compatible, _, text, nodes = fields
    fits = (
        _HEADER.size <= total <= len(view) - at
        and _HEADER.size <= reserved <= total
        and structure + 4 <= total
        and strings + text <= total
        # Version 16 does not state the size of its nodes.
        and (version < 17 or structure + nodes <= total)
        and compatible <= 17 <= max(version, 17)
    )
    if not fits or view[at + structure : at + structure + 4] != _BEGIN_NODE:
        return None
    return total


def appended(data: Bytes) -> Appended:
    """The device trees that a file ends with, one after the other without a gap.

    Zeros may follow: some tools fill up the kernel's section with them.
    """
    view = memoryview(data)
    end, content = len(view), len(without_zeros(view))
    sizes: list[int] = []
    for at in _from_the_end(view):
        size = tree_size(view, at)
        if size is not None and (at + size == end if sizes else at + size >= content):
            sizes.append(size)
            end = at
            if len(sizes) == MAX_TREES:
                break
    return Appended(end, tuple(reversed(sizes)))


def _from_the_end(view: memoryview) -> Iterator[int]:
    """Where a device tree may begin, last one first."""
    for start in reversed(range(0, len(view), _STEP)):
        # A magic may lie across two steps.
        chunk = bytes(view[start : start + _STEP + len(_MAGIC) - 1])
        at = chunk.rfind(_MAGIC)
        while at >= 0:
            yield start + at
            at = chunk.rfind(_MAGIC, 0, at + len(_MAGIC) - 1)


def trees_of(data: Bytes) -> tuple[int, ...]:
    """The sizes of the device trees that a section consists of; empty if it is anything else."""
    sizes: list[int] = []
    at = 0
    while at < len(data) and len(sizes) < MAX_TREES:
        size = tree_size(data, at)
        if size is None:
            # Some tools fill up with zeros between trees.
            return tuple(sizes) if not any(memoryview(data)[at:]) else ()
        sizes.append(size)
        at += size
    return tuple(sizes)


def table_entries(data: Bytes) -> int | None:
    """The number of entries of a dtbo table; None if it is not one."""
    view = memoryview(data)
    if len(view) < _TABLE.size or view[:4] != _TABLE_MAGIC:
        return None
    _, total, _, size, count, start, _, _ = _TABLE.unpack_from(view)
    return count if total <= len(view) and start + size * count <= total else None
