"""Traces as the emulated recorder writes them (docs/recorder-trace.md)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_SAMPLED, _KERNEL_ONLY, _TAKEN_BRANCHES, _X86_64 = 1, 2, 1, 62


def exact_trace(
    branches: Sequence[tuple[int, int]], ranges: Sequence[tuple[int, int]], count: int
) -> bytes:
    """Branches from and to, and the first and last instruction of ranges, each so many times."""
    numbers = struct.pack("<IIIIQIIQ", 1, _X86_64, _KERNEL_ONLY, 1, 0, 0, 0, 0)
    data = b"MEPOFTRC" + numbers + bytes(80)
    for kind, rows in ((1, branches), (2, ranges)):
        body = b"".join(struct.pack("<QQQ", *row, count) for row in rows)
        data += struct.pack("<II", kind, len(body)) + body
    return data + struct.pack("<IIQ", 255, 8, 2)


def sampled_trace(stacks: Sequence[Sequence[tuple[int, int]]], period: int, depth: int) -> bytes:
    """Samples of branch stacks, each a list of from and to, newest first."""
    flags = _SAMPLED | _KERNEL_ONLY
    numbers = struct.pack("<IIIIQIIQ", 1, _X86_64, flags, 1, period, depth, _TAKEN_BRANCHES, 0)
    data = b"MEPOFTRC" + numbers + bytes(80)
    for time, stack in enumerate(stacks):
        body = struct.pack("<QQII", time, stack[0][1], 0, len(stack))
        body += b"".join(struct.pack("<QQ", *entry) for entry in stack)
        data += struct.pack("<II", 3, len(body)) + body
    return data + struct.pack("<IIQ", 255, 8, len(stacks))
