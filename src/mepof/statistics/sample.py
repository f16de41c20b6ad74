"""The unit of observation, one boot of one build, and means over units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import NamedTuple


class Unit(NamedTuple):
    """The unit of observation, a boot of a build.

    Attributes:
        build: which build of the image; builds differ only in layout.
        seed: of the boot; with ``build`` it identifies the boot.
    """

    build: int
    seed: int


LogCosts = Mapping[Unit, float]

PRACTICAL_PERCENT = 0.1
"""A smaller difference is of no practical interest, however certain it is."""


def log_costs(costs: Mapping[Unit, float]) -> dict[Unit, float]:
    """The logarithms of costs; empty if any cost is zero.

    A cost of zero has no logarithm, and a comparison without that boot would drop exactly the boot
    that differs from the others.
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
    """The boots' log costs by build."""
    found: dict[int, list[float]] = {}
    for unit in sorted(costs):
        found.setdefault(unit.build, []).append(costs[unit])
    return tuple(map(tuple, found.values()))


def mean_cost(costs: Mapping[Unit, float]) -> float:
    """Geometric mean over the boots of each build, then over builds.

    The ratio of two such means is the ratio that the improvement states. If a cost is zero, there
    is no ratio, and the result is the arithmetic mean.
    """
    low, high = min(costs.values()), max(costs.values())
    if low == high:
        return low  # counts that repeat are shown exactly, without the rounding of exp
    if low <= 0:
        return fmean(costs.values())
    return exp(fmean(map(fmean, builds_of(log_costs(costs)))))
