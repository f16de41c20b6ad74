"""What is added to a recorder's branch trace once it is known: docs/recorder-trace.md."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mepof.errors import WorkError

MAGIC = b"MEPOFTRC"
_HEADER_BYTES = 128
_HEAD = struct.Struct("<II")
_NUMBERS = struct.Struct("<QQQ")
_END = struct.Struct("<IIQ")
_KIND_MAPPING, _KIND_END = 5, 255


@dataclass(frozen=True)
class Mapping:
    """A section of a kernel module in memory.

    Attributes:
        module: its name in brackets, ``[nf_tables]``.
    """

    module: str
    section: str
    address: int
    size: int


def add_mappings(trace: Path, mappings: Sequence[Mapping]) -> None:
    """Add the addresses of modules to a finished trace.

    Raises:
        WorkError: the trace does not end as one does.
    """
    with trace.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        at = file.tell() - _END.size
        if at < _HEADER_BYTES:
            raise WorkError(f"{trace} is not a branch trace: it is too short")
        file.seek(at)
        kind, size, records = _END.unpack(file.read(_END.size))
        if (kind, size) != (_KIND_END, 8):
            raise WorkError(f"{trace} does not end with the number of its records")
        file.seek(at)
        for mapping in mappings:
            names = f"{mapping.module}\0{mapping.section}\0".encode()
            body = _NUMBERS.pack(mapping.address, mapping.size, 0) + names
            body += b"\0" * (-len(body) % 8)
            file.write(_HEAD.pack(_KIND_MAPPING, len(body)) + body)
        file.write(_END.pack(_KIND_END, 8, records + len(mappings)))


def modules_in(trace: Path) -> frozenset[str]:
    """The names of the modules that a file says the addresses of, without brackets.

    Empty if it is not a recorder's trace: other formats are the profile engine's to read.
    """
    with trace.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return frozenset()
        return frozenset(name for name in _names(file) if name)


def _names(file: IO[bytes]) -> Iterator[str]:
    at = _HEADER_BYTES
    while True:
        file.seek(at)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        kind, size = _HEAD.unpack(head)
        if kind == _KIND_MAPPING:
            name = file.read(size)[_NUMBERS.size :].partition(b"\0")[0]
            yield name.decode("utf-8", "replace").strip("[]")
        at += _HEAD.size + size
