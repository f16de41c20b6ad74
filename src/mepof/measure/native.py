"""Native cycles: what the load of kernel code prints (docs/suites/kload.md), and its comparison.

Whatever disturbs a round of a case only makes it longer, so the shortest of many rounds is what the
code costs. It repeats; a mean or a median on a machine with other work does not. What remains is
layout: builds that differ in nothing else differ by several percent in a case. So the units of an
interval are builds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, log
from statistics import fmean
from typing import Literal

from mepof.errors import WorkError
from mepof.statistics.interval import difference

CONTROL = "checksum"
"""The case that calls nothing of the kernel: it is compiled alike in every build."""

MAX_SELF_DIFFERENCE_PERCENT = 0.5
"""How much the same binary may differ from itself on the geometric mean."""

Cycles = Mapping[str, float]
"""Cycles of an operation, by case."""

Verdict = Literal["fewer", "more", "none"]

_PREFIX = "kload: "
_FIELD = re.compile(r"(\w+)=(\S+)")


def cycles_in(console: str) -> dict[str, float]:
    """The cycles of an operation in the shortest round of each case.

    Args:
        console: of a kernel that was started with ``kload=``.

    Raises:
        WorkError: a case failed, or the kernel went down before it had run all.
    """
    lines = [text for line in console.splitlines() if (text := line.partition(_PREFIX)[2])]
    wrong = next(
        (line for line in lines if line.startswith("error:") or "check=failed" in line), ""
    )
    if wrong:
        raise WorkError(f"the load of kernel code failed: {wrong}")
    if "done" not in lines:
        last = console.strip().rpartition("\n")[2] or "it printed nothing"
        raise WorkError(f"the kernel did not finish the load of kernel code: {last.strip()}")
    found = {}
    for fields in (dict(_FIELD.findall(line)) for line in lines):
        if "case" in fields:
            try:
                found[fields["case"]] = int(fields["least_cycles"]) / int(fields["batch"])
            except (KeyError, ValueError, ZeroDivisionError) as error:
                raise WorkError(
                    f"the load of kernel code printed no cycles of the case {fields['case']}"
                ) from error
    return found


def least(runs: Iterable[Cycles]) -> dict[str, float]:
    """The fewest cycles of each case in several runs of one build."""
    found: dict[str, float] = {}
    for run in runs:
        for case, cycles in run.items():
            found[case] = min(cycles, found.get(case, cycles))
    return found


@dataclass(frozen=True)
class Saving:
    """How many fewer cycles an image takes than another.

    Attributes:
        percent: 100 * (1 - cycles / cycles of the baseline), of geometric means over builds.
        low: of the 95 % confidence interval over builds, as ``high``; both are the estimate if
            each image is one build.
    """

    percent: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Whether it takes fewer cycles or more, beyond the spread of layouts."""
        if self.low == self.high:
            return "none"
        return "fewer" if self.low > 0 else "more" if self.high < 0 else "none"


def saving(baseline: Sequence[Cycles], image: Sequence[Cycles], cases: Sequence[str]) -> Saving:
    """Compare two images on the geometric mean over some cases.

    Args:
        baseline: the cycles of each of its builds, which differ in layout only.
        image: those of the other.
    """
    theirs, ours = (
        [[fmean(log(build[case]) for case in cases)] for build in builds]
        for builds in (baseline, image)
    )
    found = difference(ours, theirs)
    # Without a negative zero.
    low, percent, high = (0.0 - 100 * expm1(end) for end in (found.high, found.estimate, found.low))
    return Saving(percent, low, high)


def timed_cases(cycles: Cycles) -> tuple[str, ...]:
    """The cases without the control."""
    return tuple(case for case in cycles if case != CONTROL)


def repeats(self_difference: Saving) -> bool:
    """Whether the machine is quiet enough for a verdict: the same binary agrees with itself."""
    return abs(self_difference.percent) <= MAX_SELF_DIFFERENCE_PERCENT
