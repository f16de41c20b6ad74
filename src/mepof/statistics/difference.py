"""The difference of two estimates from their intervals alone.

The method is MOVER (method of variance estimates recovery): G. Y. Zou and A. Donner, "Construction
of confidence limits about effect measures: a general approach", Statistics in Medicine 27 (2008),
1693-1702. It takes from each interval the variance near the limit that matters, so intervals need
not be symmetric. It holds for independent estimates. For estimates that share something, such as
the boots of a baseline, the true interval is narrower.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Bounded:
    """An estimate and its interval."""

    value: float
    low: float
    high: float


def difference(first: Bounded, second: Bounded) -> Bounded:
    """``second`` minus ``first``, with an interval of the same confidence."""
    value = second.value - first.value
    below = sqrt((second.value - second.low) ** 2 + (first.high - first.value) ** 2)
    above = sqrt((second.high - second.value) ** 2 + (first.value - first.low) ** 2)
    return Bounded(value, value - below, value + above)
