"""The memory that a kernel takes."""

from __future__ import annotations

import pytest

from mepof.errors import WorkError
from mepof.measure.measurement import MemoryBytes
from mepof.measure.memory import median_memory, memory_of

MEMINFO = """MemTotal:         503848 kB
MemFree:          479504 kB
MemAvailable:     473472 kB
Buffers:              10 kB
Cached:             2072 kB
Slab:              12600 kB
SReclaimable:        172 kB
KernelStack:         448 kB
PageTables:          300 kB
Active(anon):          0 kB
HugePages_Total:       0
"""
KIB = 1024


def test_what_programs_cannot_have_is_used() -> None:
    found = memory_of(MEMINFO, 512 << 20)
    assert found == MemoryBytes(
        reserved=20440 * KIB,
        allocated=22090 * KIB,
        slab=12600 * KIB,
        page_tables=300 * KIB,
        kernel_stacks=448 * KIB,
    )
    assert found.used == (20440 + 22090) * KIB


def test_the_size_of_the_machine_may_be_unknown() -> None:
    found = memory_of(MEMINFO, None)
    assert (found.reserved, found.used) == (None, 22090 * KIB)


@pytest.mark.parametrize("name", ["MemTotal", "MemFree", "SReclaimable", "PageTables"])
def test_a_missing_line_is_named(name: str) -> None:
    text = "".join(line for line in MEMINFO.splitlines(True) if not line.startswith(f"{name}:"))
    with pytest.raises(WorkError, match=f"has no line {name}"):
        memory_of(text, None)


@pytest.mark.parametrize(
    ("text", "machine"), [(MEMINFO, 256 << 20), (MEMINFO.replace("479504", "503849"), None)]
)
def test_contradictions_are_errors(text: str, machine: int | None) -> None:
    with pytest.raises(WorkError, match="contradicts"):
        memory_of(text, machine)


def test_the_median_is_taken_of_each_figure() -> None:
    one, two, three = (
        MemoryBytes(reserved=1, allocated=n, slab=4 - n, page_tables=2, kernel_stacks=0)
        for n in (1, 2, 3)
    )
    assert median_memory([three, one, two]) == two
    assert median_memory([one, three]) == MemoryBytes(
        reserved=1, allocated=1, slab=1, page_tables=2, kernel_stacks=0
    )
    assert median_memory([]) is None
