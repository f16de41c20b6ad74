"""Verdicts on all rows of an evaluation, corrected for multiple testing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mepof.statistics.compare import Comparison, narrow
from mepof.statistics.sample import PRACTICAL_PERCENT

LEVEL = 0.05
"""The expected share of false verdicts among ``faster`` and ``slower``; if nothing differs at all,
the probability of any such verdict."""

Verdict = Literal["faster", "slower", "no difference", "not enough data"]


@dataclass(frozen=True)
class Judged:
    """The verdict on one comparison.

    Attributes:
        adjusted_p: the p-value after the correction; None for a row that could not have shown a
            difference.
    """

    verdict: Verdict
    adjusted_p: float | None


def judge(comparisons: Sequence[Comparison | None], precision_percent: float) -> tuple[Judged, ...]:
    """The verdicts of all rows of an evaluation.

    Args:
        comparisons: None for rows that could not be compared.
        precision_percent: an interval within this much of zero means no difference.
    """
    # A row that cannot become significant with its ties cannot be rejected falsely either
    # (Tarone 1990). Counting it would only cost the other rows power.
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
    smallest = 1.0
    for rank, (p_value, row) in reversed(list(enumerate(sorted(tested), start=1))):
        smallest = min(smallest, p_value * len(tested) / rank)
        adjusted[row] = smallest
    return adjusted


def _verdict(
    comparison: Comparison | None, adjusted: float | None, precision_percent: float
) -> Verdict:
    if comparison is None or comparison.min_p_untied > LEVEL:
        return "not enough data"
    ratio = 1 + comparison.improvement_percent / 100
    threshold = 1 + PRACTICAL_PERCENT / 100
    if adjusted is not None and adjusted <= LEVEL:
        # Ranks and mean may disagree if one boot is far from all others.
        beyond = ratio if comparison.direction == "faster" else 1 / ratio
        if beyond > threshold:
            return comparison.direction
    low, high = comparison.interval_percent
    inside = -precision_percent <= low and high <= precision_percent
    return "no difference" if inside else "not enough data"


def enough(comparisons: Sequence[Comparison | None], precision_percent: float) -> bool:
    """Whether further boots would add little.

    Every interval must be narrow enough, and a difference in one row alone must pass the
    correction. Rows that cannot be compared do not count.
    """
    made = [c for c in comparisons if c is not None]
    return all(narrow(c, precision_percent) and c.min_p_untied * len(made) <= LEVEL for c in made)
