"""Outliers: boots far from the others of their build; marked, never dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log1p
from statistics import median

from mepof.statistics.sample import PRACTICAL_PERCENT, LogCosts, Unit

_CUT = 3.5
_MIN_BOOTS = 4
# The median absolute deviation of normal data, in standard deviations.
_NORMAL = 0.6745


@dataclass(frozen=True)
class Outlier:
    """A boot, and how far its cost lies from the median of its build's boots."""

    unit: Unit
    deviation_percent: float


def outliers(costs: LogCosts) -> tuple[Outlier, ...]:
    """The boots that are far from the others of their build; none in builds of under four."""
    found: list[Outlier] = []
    for build in sorted({unit.build for unit in costs}):
        units = sorted(unit for unit in costs if unit.build == build)
        values = [costs[unit] for unit in units]
        middle = median(values)
        found += [
            Outlier(unit, 100 * expm1(costs[unit] - middle))
            for unit, unlike in zip(units, unlike_others(values), strict=True)
            if unlike
        ]
    return tuple(found)


def unlike_others(log_costs: Sequence[float]) -> tuple[bool, ...]:
    """Which values have a modified z-score above 3.5.

    A deviation below the practical threshold does not count, so that counts that barely vary have
    no outliers.

    Source of score and cut-off: Iglewicz and Hoaglin, How to Detect and Handle Outliers.
    """
    if len(log_costs) < _MIN_BOOTS:
        return (False,) * len(log_costs)
    middle = median(log_costs)
    distances = [abs(cost - middle) for cost in log_costs]
    spread = median(distances)
    practical = log1p(PRACTICAL_PERCENT / 100)
    return tuple(d > practical and _NORMAL * d > _CUT * spread for d in distances)
