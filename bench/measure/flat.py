"""AutoFDO profiles without their inlining: what two kernels that inline differently have in common.

The counts of a function are the sums over all its copies, as LLVM's ``ProfileConverter`` flattens
a profile (LLVM 22, llvm/include/llvm/ProfileData/SampleProf.h).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof import _engine

_INLINED = re.compile(r"( +)[\d.]+: ([^\s\d]\S*):\d+$")
_BODY = re.compile(r"( +)([\d.]+): (\d+)( |$)")

Flat = Mapping[tuple[str, str], int]


def read(profile: Path) -> Flat:
    """The count of each line of each function, by the function's name and the line."""
    with TemporaryDirectory() as scratch:
        text = Path(scratch) / "profile.txt"
        _engine.merge([(profile, 1)], text, "autofdo-text")
        return flat(text.read_text(encoding="utf-8"))


def flat(text: str) -> Flat:
    """The same for a profile in the text form."""
    counts: Counter[tuple[str, str]] = Counter()
    # The functions around a line, each with the indentation of its own line.
    around: list[tuple[int, str]] = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        while around and around[-1][0] >= depth:
            around.pop()
        if depth == 0:
            around.append((0, line.rsplit(":", 2)[0]))
        elif match := _INLINED.match(line):
            around.append((depth, match[2]))
        elif match := _BODY.match(line):
            counts[around[-1][1], match[2]] += int(match[3])
    return counts


def overlap(one: Flat, other: Flat) -> float:
    """The share that two profiles have in common, in percent: the sum of min(p, q)."""
    totals = sum(one.values()), sum(other.values())
    shares = (min(one[key] / totals[0], other.get(key, 0) / totals[1]) for key in one)
    return 100 * sum(shares) if all(totals) else 0.0
