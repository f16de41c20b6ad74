"""What is observed: one boot of one build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import NamedTuple


class Unit(NamedTuple):
    """The unit of observation, a boot of a build.

    Attributes:
        build: which build of the image; they differ in their layout alone.
        seed: of the boot; with the build it names the boot.
    """

    build: int
    seed: int


LogCosts = Mapping[Unit, float]

PRACTICAL_PERCENT = 0.1
"""A difference below this much is of no practical interest, however certain it is."""


def log_costs(costs: Mapping[Unit, float]) -> dict[Unit, float]:
    """The logarithms of costs; nothing if one of them is zero.

    A boot that cost nothing has no ratio, and a comparison that left it out would drop the very
    boot that is unlike the others.
    """
    if any(cost <= 0 for cost in costs.values()):
        return {}
    return {unit: log(costs[unit]) for unit in sorted(costs)}


def mean_over_cases(cases: Sequence[LogCosts]) -> dict[Unit, float]:
    """Mean log cost over the cases, for every boot in which all of them ran."""
    if not cases:
        return {}
    units = set(cases[0]).intersection(*cases[1:])
    return {unit: fmean(case[unit] for case in cases) for unit in sorted(units)}


def builds_of(costs: LogCosts) -> tuple[tuple[float, ...], ...]:
    """The boots of every build."""
    found: dict[int, list[float]] = {}
    for unit in sorted(costs):
        found.setdefault(unit.build, []).append(costs[unit])
    return tuple(map(tuple, found.values()))


def mean_cost(costs: Mapping[Unit, float]) -> float:
    """Geometric mean over the boots of a build and then over builds, so that the ratio of two is
    the ratio that the improvement states.

    Falls back on the arithmetic mean if a cost is zero: there is no ratio then.
    """
    low, high = min(costs.values()), max(costs.values())
    if low == high:
        return low  # counts that repeat are shown to the digit, without exp's rounding
    if low <= 0:
        return fmean(costs.values())
    return exp(fmean(map(fmean, builds_of(log_costs(costs)))))
