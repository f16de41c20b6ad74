"""Many profiles of one build, put together of functions as a few profiles have them.

The binary form numbers names in a table, so the bytes of a function are good in every profile with
the same table. Putting them together costs a thousandth of merging profiles.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

#: Sections of LLVM's extensible binary form (``SampleProf.h``, ``SecType``).
_FUNCTION_OFFSETS, _FUNCTIONS = 4, 32
_HEADER = struct.Struct("<QQQQ")


@dataclass(frozen=True)
class Pieces:
    """A profile, taken apart.

    Attributes:
        start: the file up to the number of its sections.
        sections: kind, flags and bytes of each, in their headers' order.
        functions: by the number of the name.
    """

    start: bytes
    sections: tuple[tuple[int, int, bytes], ...]
    functions: dict[int, bytes]


def taken_apart(file: bytes) -> Pieces:
    """The pieces of an extensible binary whose sections are not compressed."""
    at = _uleb(file, _uleb(file, 0)[1])[1]
    count = int.from_bytes(file[at : at + 8], "little")
    headers = [_HEADER.unpack_from(file, at + 8 + _HEADER.size * n) for n in range(count)]
    sections = [
        (kind, flags, file[offset : offset + size]) for kind, flags, offset, size in headers
    ]
    of_kind = {kind: content for kind, _, content in sections}
    table, content = of_kind[_FUNCTION_OFFSETS], of_kind[_FUNCTIONS]
    starts = []
    many, position = _uleb(table, 0)
    for _ in range(many):
        name, position = _uleb(table, position)
        offset, position = _uleb(table, position)
        starts.append((offset, name))
    starts.sort()
    ends = [offset for offset, _ in starts[1:]] + [len(content)]
    functions = {
        name: content[offset:end] for (offset, name), end in zip(starts, ends, strict=True)
    }
    return Pieces(file[:at], tuple(sections), functions)


def put_together(variants: Sequence[Pieces], chance: random.Random, share: float) -> bytes:
    """A profile with a share of the functions, each as one of the variants has it."""
    first = variants[0]
    picks = chance.choices(variants, k=len(first.functions))
    content, offsets, position = [], [], 0
    for name, variant in zip(first.functions, picks, strict=True):
        if chance.random() < share:
            content.append(variant.functions[name])
            offsets.append(_padded(name) + _padded(position))
            position += len(content[-1])
    made = {
        _FUNCTIONS: b"".join(content),
        _FUNCTION_OFFSETS: _padded(len(content)) + b"".join(offsets),
    }
    file = [first.start, len(first.sections).to_bytes(8, "little")]
    at = len(first.start) + 8 + _HEADER.size * len(first.sections)
    bodies = []
    for kind, flags, body in first.sections:
        bodies.append(made.get(kind, body))
        file.append(_HEADER.pack(kind, flags, at, len(bodies[-1])))
        at += len(bodies[-1])
    return b"".join(file + bodies)


def _padded(number: int) -> bytes:
    """A number under 2^28 as LEB128 of four bytes."""
    return bytes(
        (number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21)
    )


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
