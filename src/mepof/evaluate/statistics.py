"""Comparing the costs of two images: paired by seed, on the scale of log ratios.

Cost ratios are compared through their logarithms, so that swapping the two images changes the
sign and nothing else, and so that the mean over cases is the geometric mean, which does not
depend on the cases' units. ``docs/statistics.md`` states the method with a worked example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log1p, sqrt
from statistics import fmean, stdev
from typing import Literal

CONFIDENCE = 0.95
PRACTICAL_PERCENT = 0.1
"""A difference below this much is of no practical interest, however certain it is."""

Verdict = Literal["faster", "slower", "no difference", "not enough data"]
Seed = int


@dataclass(frozen=True)
class Comparison:
    """How much better one image is than another.

    Attributes:
        improvement_percent: (baseline cost / cost - 1) * 100, geometric mean over the pairs.
        interval_percent: its confidence interval; with fewer than two pairs there is none,
            and both ends are the estimate.
        verdict: what may be said.
        pairs: boots of both images with the same seed.
    """

    improvement_percent: float
    interval_percent: tuple[float, float]
    verdict: Verdict
    pairs: int


def log_ratios(baseline: Mapping[Seed, float], cost: Mapping[Seed, float]) -> dict[Seed, float]:
    """ln(baseline / cost) of every seed that both have; positive is better.

    A seed at which either cost is zero has no ratio and is left out.
    """
    return {
        seed: log(baseline[seed] / cost[seed])
        for seed in baseline
        if seed in cost and baseline[seed] > 0 and cost[seed] > 0
    }


def mean_over_cases(cases: Sequence[Mapping[Seed, float]]) -> dict[Seed, float]:
    """Mean log ratio over the cases, for every seed at which all cases have one."""
    if not cases:
        return {}
    seeds = set(cases[0]).intersection(*cases[1:])
    return {seed: fmean(case[seed] for case in cases) for seed in sorted(seeds)}


def compare(ratios: Mapping[Seed, float]) -> Comparison | None:
    """The comparison that log ratios by seed give; None if there are none.

    The interval is Student's t interval of the mean log ratio with n - 1 degrees of freedom,
    carried back to percent. The verdict is ``faster`` or ``slower`` if the whole interval lies
    beyond the practical threshold, and ``no difference`` if not.
    """
    values = [ratios[seed] for seed in sorted(ratios)]
    if not values:
        return None
    mean = fmean(values)
    half = _half_width(values)
    low, high = mean - half, mean + half
    threshold = log1p(PRACTICAL_PERCENT / 100)
    verdict: Verdict = "no difference"
    if len(values) < 2:
        verdict = "not enough data"
    elif low > threshold:
        verdict = "faster"
    elif high < -threshold:
        verdict = "slower"
    return Comparison(_percent(mean), (_percent(low), _percent(high)), verdict, len(values))


def mean_cost(costs: Sequence[float]) -> float:
    """Geometric mean, so that the ratio of two is the ratio that the improvement states.

    Falls back on the arithmetic mean if a cost is zero: there is no ratio then.
    """
    low, high = min(costs), max(costs)
    if low == high:
        return low  # counts that repeat are shown to the digit, without exp's rounding
    if low <= 0:
        return fmean(costs)
    return exp(fmean(map(log, costs)))


def _half_width(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    # Imported here, because it takes longer than a whole cached run may.
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
    return quantile * stdev(values) / sqrt(len(values))


def _percent(log_ratio: float) -> float:
    return 100 * expm1(min(log_ratio, 700.0))
