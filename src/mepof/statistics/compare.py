"""Comparing one image with a baseline in one row: a case, or the mean over cases."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p
from typing import Literal

from mepof.statistics import ranks
from mepof.statistics.interval import Builds, Difference, Method, difference
from mepof.statistics.sample import PRACTICAL_PERCENT, LogCosts, builds_of

Direction = Literal["faster", "slower"]

_THRESHOLD = log1p(PRACTICAL_PERCENT / 100)
_MIN_RATIO = 1e-16


@dataclass(frozen=True)
class Comparison:
    """How much less one image costs than another.

    Attributes:
        improvement_percent: (baseline cost / cost - 1) * 100, of geometric means.
        interval_percent: its 95 % confidence interval; both ends are the estimate if ``method``
            is ``none``.
        p_value: two-sided, of the hypothesis that the images differ by no more than the
            practical threshold.
        direction: that the ranks of the boots indicate.
        min_p: the smallest p-value that this many boots with these ties could have.
        min_p_untied: the smallest p-value that this many boots could have without ties.
        boots: of the image; ``baseline_boots`` are those that it is compared with.
    """

    improvement_percent: float
    interval_percent: tuple[float, float]
    method: Method
    p_value: float
    direction: Direction
    min_p: float
    min_p_untied: float
    boots: int
    baseline_boots: int


def compare(
    baseline: LogCosts, image: LogCosts, layouts: LogCosts | None = None
) -> Comparison | None:
    """The comparison of two images' log costs; None if either image has none.

    Args:
        layouts: of an image in several builds, by how much builds of these two differ as well.
    """
    if not baseline or not image:
        return None
    theirs, ours = builds_of(baseline), builds_of(image)
    found = difference(theirs, ours, builds_of(layouts or {}))
    p_value, direction, min_p = _tested(theirs, ours)
    p_value = max(p_value, _layout(found))
    return Comparison(
        improvement_percent=_percent(found.estimate),
        interval_percent=(_percent(found.low), _percent(found.high)),
        method=found.method,
        p_value=p_value,
        direction=direction,
        min_p=min_p,
        min_p_untied=min(1.0, 2 * ranks.min_p(len(image), len(baseline))),
        boots=len(image),
        baseline_boots=len(baseline),
    )


def reduction_percent(improvement_percent: float) -> float:
    """How much less an image costs, (1 - cost / baseline cost) * 100, from its improvement.

    It is monotonic, so it converts the ends of an interval as well.

    Args:
        improvement_percent: (baseline cost / cost - 1) * 100.
    """
    # The end of a very wide interval rounds to -100 %, of which the reduction is not finite.
    ratio = max(1 + improvement_percent / 100, _MIN_RATIO)
    return improvement_percent / ratio + 0.0  # no negative zero


def min_boots(rows: int, level: float, controlled: bool) -> int:
    """The smallest number of boots of an image that can show a difference in one of many rows.

    Args:
        rows: how many rows the correction is for.
        level: the false discovery rate.
        controlled: whether the A/A control doubles the baseline's boots.
    """
    boots = 1
    while 2 * ranks.min_p(boots, 2 * boots if controlled else boots) * max(rows, 1) > level:
        boots += 1
    return boots


def narrow(comparison: Comparison, precision_percent: float) -> bool:
    """Whether the interval is no wider than plus or minus the precision."""
    low, high = comparison.interval_percent
    return comparison.method != "none" and high - low <= 2 * precision_percent


def _tested(baseline: Builds, image: Builds) -> tuple[float, Direction, float]:
    """The p-value of the boots' ranks, their direction, and the smallest possible p-value."""
    theirs = [cost for boots in baseline for cost in boots]
    ours = [cost for boots in image for cost in boots]
    if min(*theirs, *ours) == max(*theirs, *ours):
        return 1.0, "faster", 1.0
    # Each side is shifted by the threshold, to the boundary of the hypothesis.
    faster, min_faster = ranks.smaller([c + _THRESHOLD for c in ours], theirs)
    slower, min_slower = ranks.smaller([_THRESHOLD - c for c in ours], [-c for c in theirs])
    direction: Direction = "faster" if faster <= slower else "slower"
    min_p = min(1.0, 2 * min(min_faster, min_slower))
    return min(1.0, 2 * min(faster, slower)), direction, min_p


def _layout(found: Difference) -> float:
    """The p-value of the difference, given how much builds of one image differ."""
    if found.between_builds is None:
        return 0.0
    error, freedom = found.between_builds
    beyond = abs(found.estimate) - _THRESHOLD
    if beyond <= 0:
        return 1.0
    if error == 0:
        return 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -beyond / error))


def _percent(log_ratio: float) -> float:
    return 100 * expm1(min(log_ratio, 700.0)) + 0.0  # no negative zero
