"""The counters of an instrumented kernel, and the instructions that count.

Each counter of Clang's instrumentation stands for a basic block (or an edge) of the source, and
one or more instructions add to it. The raw profile says how often these ran, so a branch trace can
be compared with it without debug information in between.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mepof.process import run

# LLVM 22, llvm/include/llvm/ProfileData/InstrProfData.inc, INSTR_PROF_RAW_HEADER: 64-bit fields
# from the magic on. The version's lower 56 bits are the format's number.
_HEADER = struct.Struct("<16Q")
_FORMATS = (9, 10, 11)
_RECORD_BYTES = 64
_ADDS = re.compile(r"^([0-9a-f]+):\s+(\w+)\s[^#]*# 0x([0-9a-f]+)")


def values(raw: Path) -> list[int]:
    """The counters of a raw profile of one image, in the order of their section.

    Raises:
        ValueError: it is of another format.
    """
    data = raw.read_bytes()
    fields = _HEADER.unpack_from(data)
    version, binary_ids, records, before, count = fields[1:6]
    if version & 0xFFFFFFFFFFFFFF not in _FORMATS:
        raise ValueError(f"{raw} is of version {version & 0xFFFFFFFFFFFFFF}")
    start = _HEADER.size + binary_ids + records * _RECORD_BYTES + before
    return list(struct.unpack_from(f"<{count}Q", data, start))


def increments(vmlinux: Path, objdump: str) -> dict[int, list[int]]:
    """The addresses of the instructions that add one to a counter, by the counter's number.

    A counter that other instructions reach too is left out: the compiler adds to it once for
    many rounds of a loop.
    """
    with vmlinux.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        bounds = [
            symbol["st_value"]
            for end in ("start", "end")
            for symbol in table.get_symbol_by_name(f"__mepof_prf_cnts_{end}") or ()
        ]
    found: dict[int, list[int]] = {}
    others: set[int] = set()
    shown = run([objdump, "-d", "--no-show-raw-insn", vmlinux]).output
    for line in shown.splitlines():
        if match := _ADDS.match(line):
            at = int(match[3], 16)
            if bounds[0] <= at < bounds[1]:
                number = (at - bounds[0]) // 8
                if match[2] == "incq":
                    found.setdefault(number, []).append(int(match[1], 16))
                else:
                    others.add(number)
    return {number: at for number, at in found.items() if number not in others}


class Executed:
    """How often instructions ran, by the ranges of a branch trace.

    Args:
        unsymbolized: llvm-profgen's unsymbolized text, as mepof writes it.
        base: what the addresses in it are counted from.
    """

    def __init__(self, unsymbolized: Iterable[str], base: int) -> None:
        lines = iter(unsymbolized)
        changes: dict[int, int] = {}
        for _ in range(int(next(lines))):
            span, _, count = next(lines).partition(":")
            first, _, last = span.partition("-")
            changes[base + int(first, 16)] = changes.get(base + int(first, 16), 0) + int(count)
            after = base + int(last, 16) + 1
            changes[after] = changes.get(after, 0) - int(count)
        self._starts = sorted(changes)
        self._counts = list(accumulate(changes[at] for at in self._starts))

    def count(self, address: int) -> int:
        """How often the instruction at an address ran."""
        index = bisect_right(self._starts, address)
        return self._counts[index - 1] if index else 0


def overlap(one: Mapping[int, int], other: Mapping[int, int]) -> float:
    """The share that two distributions have in common, from 0 to 1: sum of min(p, q)."""
    totals = sum(one.values()), sum(other.values())
    if not all(totals):
        return 0.0
    return sum(min(one[key] / totals[0], other.get(key, 0) / totals[1]) for key in one)
