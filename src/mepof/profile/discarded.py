"""How much of a profile of counters fits a kernel of another source, as its build tells."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from mepof.profile.counts import FunctionCounts
from mepof.toolchain.profile_names import object_of

# What Clang says of a function whose control flow is not the one that was counted: see
# llvm/lib/Transforms/Instrumentation/PGOInstrumentation.cpp.
_DISCARDED = re.compile(
    r"warning: (\S+): function control flow change detected \(hash mismatch\) (\S+) "
    r"Hash = \d+ up to (\d+) count discarded"
)


def matched_percent(
    counted: Iterable[FunctionCounts], defined: Mapping[str, Collection[str]], log: Path
) -> float:
    """The share of a profile's counts that a build used at most.

    Counts are lost with a function whose control flow differs, and with one that is gone: a global
    one that no object defines, or a static one whose file is not compiled. A static one that is
    gone from a file that is compiled cannot be distinguished from one that was inlined.

    Args:
        defined: the functions of the build, by the paths of the objects that define them.
        log: the output of make.
    """
    symbols = {name.partition(".")[0] for names in defined.values() for name in names}
    total = gone = 0
    for each in counted:
        total += each.total
        source, _, name = each.name.rpartition(";")
        compiled = object_of(source)
        if name not in symbols if not source else compiled not in defined:
            gone += each.total
    lost = gone + sum(_discarded(log).values())
    return 100.0 * (1 - min(lost, total) / total) if total else 100.0


def _discarded(log: Path) -> dict[tuple[str, str], int]:
    """The counts that the compiler discarded, by source and function.

    The first of a function's: a file may be compiled twice, and counts in context come after
    the others.
    """
    counts: dict[tuple[str, str], int] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := _DISCARDED.search(line):
                counts.setdefault((found[1], found[2]), int(found[3]))
    return counts
