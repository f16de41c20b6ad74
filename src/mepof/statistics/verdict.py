"""Verdicts over all rows of an evaluation, with their number corrected for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mepof.statistics.compare import Comparison, narrow
from mepof.statistics.sample import PRACTICAL_PERCENT

LEVEL = 0.05
"""Share of the verdicts ``faster`` and ``slower`` of an evaluation that may be expected to be
false; where nothing differs at all, the probability that there is one."""

Verdict = Literal["faster", "slower", "no difference", "not enough data"]


@dataclass(frozen=True)
class Judged:
    """What may be said of one comparison.

    Attributes:
        adjusted_p: the p-value after the correction; None for a row that could show nothing.
    """

    verdict: Verdict
    adjusted_p: float | None


def judge(comparisons: Sequence[Comparison | None], precision_percent: float) -> tuple[Judged, ...]:
    """The verdicts of all rows of an evaluation.

    Args:
        comparisons: None for rows that could not be compared.
        precision_percent: two images whose interval lies within this much do not differ.
    """
    # A row that no data with its ties could make significant is no hypothesis that may be
    # falsely rejected (Tarone 1990); counting it would only blunt the others.
    tested = [
        (c.p_value, n) for n, c in enumerate(comparisons) if c is not None and c.min_p <= LEVEL
    ]
    adjusted = _benjamini_hochberg(tested)
    return tuple(
        Judged(_verdict(c, adjusted.get(n), precision_percent), adjusted.get(n))
        for n, c in enumerate(comparisons)
    )


def _benjamini_hochberg(tested: Sequence[tuple[float, int]]) -> dict[int, float]:
    """Adjusted p-values by row. Source: Benjamini and Hochberg 1995."""
    adjusted: dict[int, float] = {}
    least = 1.0
    for rank, (p_value, row) in reversed(list(enumerate(sorted(tested), start=1))):
        least = min(least, p_value * len(tested) / rank)
        adjusted[row] = least
    return adjusted


def _verdict(
    comparison: Comparison | None, adjusted: float | None, precision_percent: float
) -> Verdict:
    if comparison is None or comparison.min_p_untied > LEVEL:
        return "not enough data"
    ratio = 1 + comparison.improvement_percent / 100
    threshold = 1 + PRACTICAL_PERCENT / 100
    if adjusted is not None and adjusted <= LEVEL:
        # The ranks and the mean may disagree, when one boot is far away from all others.
        beyond = ratio if comparison.direction == "faster" else 1 / ratio
        if beyond > threshold:
            return comparison.direction
    low, high = comparison.interval_percent
    inside = -precision_percent <= low and high <= precision_percent
    return "no difference" if inside else "not enough data"


def enough(comparisons: Sequence[Comparison | None], precision_percent: float) -> bool:
    """Whether further boots would add little: every interval is narrow enough, and a difference
    in one row alone would pass the correction.

    Rows that cannot be compared are not waited for.
    """
    made = [c for c in comparisons if c is not None]
    return all(narrow(c, precision_percent) and c.min_p_untied * len(made) <= LEVEL for c in made)
