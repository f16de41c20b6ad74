"""Confidence intervals of the difference of two mean log costs.

The units are boots if every image is one build. If an image has several builds, the units are
builds, because boots of one build share its layout: the mean of an image is the mean of its builds'
means, whose spread covers the variation of both builds and boots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import fmean
from typing import Any, Literal

from mepof.statistics.outlier import unlike_others

CONFIDENCE = 0.95
BCA_UNITS = 20
"""With at least this many units of each image and no outlier, intervals are BCa.

With fewer, or with outliers, BCa intervals are too narrow: ``docs/benchmarks/verdicts.md``."""

RESAMPLES = 10_000
RESAMPLING_SEED = 1
"""One seed for all rows: every row draws the same boots, and the same data give the same interval
in whatever order rows are analysed."""

Method = Literal["t", "BCa", "none"]
Builds = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Difference:
    """Mean log cost of one image minus that of another.

    Attributes:
        low: of the interval, as ``high``; both are the estimate if ``method`` is ``none``.
        between_builds: standard error and degrees of freedom of the spread between builds; None
            if each image is one build.
    """

    estimate: float
    low: float
    high: float
    method: Method
    between_builds: tuple[float, float] | None = None


def difference(first: Builds, second: Builds, third: Builds = ()) -> Difference:
    """The mean of ``first`` minus that of ``second``, with its interval.

    Args:
        first: log costs of one image, by build and boot.
        second: those of the other.
        third: those of an image whose builds also show what layout causes.
    """
    estimate = fmean(map(fmean, first)) - fmean(map(fmean, second))
    several = max(len(first), len(second), len(third)) > 1
    units = [
        tuple(map(fmean, builds)) if several else tuple(builds[0]) for builds in (first, second)
    ]
    spread = _pooled(*units, [*map(fmean, third)]) if several else _welch(*units)
    if spread is None:
        return Difference(estimate, estimate, estimate, "none")
    between = spread if several else None
    if spread[0] > 0 and min(map(len, units)) >= BCA_UNITS and not any(map(_odd, units)):
        means = _means_of_builds if several else _means_of_boots
        low, high = _bca([means(b, n) for n, b in enumerate((first, second))], estimate, units)
        return Difference(estimate, low, high, "BCa", between)
    half = _half_width(*spread)
    return Difference(estimate, estimate - half, estimate + half, "t", between)


def t_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Welch's t interval of the difference of two means of at least two values each."""
    spread = _welch(first, second)
    assert spread is not None
    estimate, half = fmean(first) - fmean(second), _half_width(*spread)
    return estimate - half, estimate + half


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's t interval of the mean of some values; None of fewer than two."""
    if len(values) < 2:
        return None
    freedom = len(values) - 1
    mean = fmean(values)
    half = _half_width(sqrt(_squares(values) / freedom / len(values)), freedom)
    return mean - half, mean + half


def bca_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The BCa interval of the difference of two means, of any number of values."""
    estimate, units = fmean(first) - fmean(second), (first, second)
    if all(len(set(values)) == 1 for values in units):
        return estimate, estimate
    return _bca([_means_of_boots((v,), n) for n, v in enumerate(units)], estimate, units)


def _odd(values: Sequence[float]) -> bool:
    return any(unlike_others(values))


def _half_width(error: float, freedom: float) -> float:
    if error == 0:
        return 0.0
    # Imported here because importing it takes longer than a fully cached run may.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error


def _welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Standard error and degrees of freedom of the difference of two means (Welch 1947)."""
    if min(len(first), len(second)) < 2:
        return _pooled(first, second)
    parts = [
        (_squares(values) / (len(values) - 1) / len(values), len(values) - 1)
        for values in (first, second)
    ]
    total = sum(part for part, _ in parts)
    if total == 0:
        return 0.0, float(sum(freedom for _, freedom in parts))
    return sqrt(total), total**2 / sum(part**2 / freedom for part, freedom in parts)


def _squares(values: Sequence[float]) -> float:
    """The sum of squared deviations; exactly 0 if all values are equal."""
    if min(values) == max(values):
        return 0.0
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _pooled(
    first: Sequence[float], second: Sequence[float], *others: Sequence[float]
) -> tuple[float, float] | None:
    """The same with a variance pooled over all samples, each of which may be a single value."""
    samples = [values for values in (first, second, *others) if values]
    freedom = sum(len(values) - 1 for values in samples)
    if freedom < 1:
        return None
    squares = sum(map(_squares, samples))
    return sqrt(squares / freedom * (1 / len(first) + 1 / len(second))), float(freedom)


def _means_of_boots(builds: Builds, stream: int) -> Any:
    import numpy as np

    (boots,) = builds
    return np.asarray(boots)[_drawn(len(boots), stream)].mean(axis=1)


def _means_of_builds(builds: Builds, stream: int) -> Any:
    """Means of resampled builds, with the boots of each build resampled too."""
    import numpy as np

    count = len(builds)
    generator = np.random.default_rng([RESAMPLING_SEED, 2, stream])
    # The boots of every build, resampled once for each position that the build may be drawn to.
    redrawn = np.stack(
        [
            np.asarray(boots)[
                generator.integers(0, len(boots), (RESAMPLES, count, len(boots)))
            ].mean(axis=2)
            for boots in builds
        ]
    )
    chosen = generator.integers(0, count, (RESAMPLES, count))
    rows, positions = np.indices(chosen.shape)
    return redrawn[chosen, rows, positions].mean(axis=1)


@lru_cache(maxsize=32)
def _drawn(count: int, stream: int) -> Any:
    import numpy as np

    generator = np.random.default_rng([RESAMPLING_SEED, 1, stream])
    return generator.integers(0, count, (RESAMPLES, count))


def _bca(
    means: Sequence[Any], estimate: float, units: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """The BCa interval of the difference of two samples' means.

    Args:
        means: of each sample's resamples.
        estimate: the difference of the samples' means.
        units: the samples.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 14.3 and 15.36.
    """
    import numpy as np
    from scipy.special import ndtr, ndtri

    resampled = means[0] - means[1]
    below = (np.sum(resampled < estimate) + np.sum(resampled <= estimate)) / 2
    bias = float(ndtri(min(max(below, 0.5), RESAMPLES - 0.5) / RESAMPLES))
    cubes = squares = 0.0
    for sign, values in zip((1, -1), units, strict=True):
        count, mean = len(values), fmean(values)
        influences = [sign * (value - mean) for value in values]
        cubes += sum(u**3 for u in influences) / count**3
        squares += sum(u**2 for u in influences) / count**2
    acceleration = cubes / (6 * squares**1.5)
    ends = []
    for level in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2):
        shifted = bias + float(ndtri(level))
        ends.append(float(ndtr(bias + shifted / (1 - acceleration * shifted))))
    low, high = np.quantile(resampled, ends)
    return float(low), float(high)
