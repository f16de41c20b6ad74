"""What is in a profile of an instrumented kernel, read from ``llvm-profdata show``.

The overlap of two profiles is that of ``llvm-profdata overlap`` (LLVM 22,
llvm/lib/ProfileData/InstrProf.cpp, ``OverlapStats``): the sum over all counters that both have of
the lesser of their shares in all counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path

from mepof.errors import InputError, WorkError
from mepof.process import run
from mepof.profile.instrumentation import UNREADABLE, toolchain_reading
from mepof.toolchain.profile_names import current
from mepof.toolchain.protocol import Toolchain

# Below it a difference comes from rounding.
_NOISE = 1e-12
_NAME = re.compile(r"  (\S.*):$")
_HASH = re.compile(r"    Hash: (0x[0-9a-f]+)$")
_BLOCKS = re.compile(r"    Block counts: \[([\d, ]*)\]$")


@dataclass(frozen=True)
class FunctionCounts:
    """The counts of a function.

    Attributes:
        name: of its symbol, after its file and ``;`` if it is static.
        hash: of its control flow.
        blocks: how often each block that has a counter ran.
    """

    name: str
    hash: str
    blocks: tuple[int, ...]

    @cached_property
    def total(self) -> int:
        """The sum of its counters."""
        return sum(self.blocks)


@dataclass(frozen=True)
class Difference:
    """A function that two profiles do not count alike.

    Attributes:
        base_share, test_share: of all counts of each profile.
        overlap: the function's part of the profiles' overlap.
    """

    name: str
    base_share: float
    test_share: float
    overlap: float

    @property
    def lost(self) -> float:
        """Its part of what the overlap is short of 1."""
        return (self.base_share + self.test_share) / 2 - self.overlap


@dataclass(frozen=True)
class Comparison:
    """How alike two profiles are.

    Attributes:
        overlap: 1 where the counts have the same proportions.
        changed: functions in both whose control flow differs.
        differences: the functions that set them apart, the largest loss first.
    """

    overlap: float
    common: int
    base_only: int
    test_only: int
    changed: int
    differences: tuple[Difference, ...]


def read_counts(path: Path, toolchain: Toolchain | None = None) -> tuple[FunctionCounts, ...]:
    """Every function of a profile, raw or indexed, the largest total first.

    Args:
        toolchain: whose tools read it; by default an installed one that does.

    Raises:
        InputError: it cannot be read, or is empty.
        EnvironmentLack: llvm-profdata is missing.
    """
    tool = (toolchain or toolchain_reading([path])).tool("profile-merger")
    show: list[str | Path] = [tool, "show", "--all-functions", "--counts", path.resolve()]
    try:
        # Counts in context are shown apart from the others; without them, they are what there is.
        found = list(_functions(run(show).output.splitlines())) or list(
            _functions(run([*show, "--showcs"]).output.splitlines())
        )
    except WorkError as error:
        raise InputError(
            f"{path} cannot be read: {error.message}",
            UNREADABLE,
        ) from error
    found.sort(key=lambda f: (-f.total, f.name))
    if not found:
        raise InputError(f"{path} has no functions", "collect it from an instrumented kernel")
    return tuple(found)


def compare_counts(base: Iterable[FunctionCounts], test: Iterable[FunctionCounts]) -> Comparison:
    """Compare two profiles by the names of functions and the hashes of their control flow."""
    old, new = _by_name(base), _by_name(test)
    old_total, new_total = (
        sum(f.total for flows in functions.values() for f in flows.values()) or 1
        for functions in (old, new)
    )
    differences: list[Difference] = []
    changed = 0
    for name in sorted({*old, *new}):
        one, other = old.get(name, {}), new.get(name, {})
        alike = [
            (one[flow].blocks, other[flow].blocks)
            for flow in sorted(one.keys() & other.keys())
            if len(one[flow].blocks) == len(other[flow].blocks)
        ]
        changed += bool(one and other and not alike)
        differences.append(
            Difference(
                name,
                sum(f.total for f in one.values()) / old_total,
                sum(f.total for f in other.values()) / new_total,
                fsum(
                    min(a / old_total, b / new_total)
                    for blocks in alike
                    for a, b in zip(*blocks, strict=True)
                ),
            )
        )
    return Comparison(
        fsum(difference.overlap for difference in differences),
        len(old.keys() & new.keys()),
        len(old.keys() - new.keys()),
        len(new.keys() - old.keys()),
        changed,
        tuple(sorted((d for d in differences if d.lost > _NOISE), key=lambda d: (-d.lost, d.name))),
    )


def _by_name(functions: Iterable[FunctionCounts]) -> dict[str, dict[str, FunctionCounts]]:
    """By name and hash: only the hash distinguishes static functions with the same name."""
    found: dict[str, dict[str, FunctionCounts]] = {}
    for function in functions:
        found.setdefault(function.name, {})[function.hash] = function
    return found


def _functions(lines: Iterable[str]) -> Iterator[FunctionCounts]:
    name = flow = ""
    for line in lines:
        if found := _NAME.match(line):
            name = current(found[1])
        elif found := _HASH.match(line):
            flow = found[1]
        elif found := _BLOCKS.match(line):
            blocks = tuple(int(count) for count in found[1].split(",") if count.strip())
            yield FunctionCounts(name, flow, blocks)
