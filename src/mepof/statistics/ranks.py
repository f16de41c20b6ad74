"""The Mann-Whitney U test: one-sided, exact, with ties as they are.

The distribution is that of the rank sum over all ways to assign the observed ranks, so it is
valid for any data: counts that repeat, two modes, outliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, sqrt

_EXACT = 60
"""Up to this many values in total the distribution is enumerated; every number of ways is then an
integer that a float represents exactly."""


def smaller(values: Sequence[float], reference: Sequence[float]) -> tuple[float, float]:
    """Test whether values lie below a reference.

    Returns:
        The p-value, and the smallest p-value that any values with these ties could have.
    """
    ranks = _doubled_midranks([*values, *reference])
    total = sum(ranks[: len(values)])
    if all(rank % 2 == 0 for rank in ranks):  # without ties: the ranks themselves
        ranks, total = [rank // 2 for rank in ranks], total // 2
    ordered = tuple(sorted(ranks))
    if len(ranks) > _EXACT:
        smallest = sum(ordered[: len(values)])
        return _normal(ordered, len(values), total), _normal(ordered, len(values), smallest)
    tail, least_tail = _tails(ordered, len(values), total)
    ways = comb(len(ranks), len(values))
    return tail / ways, least_tail / ways


def min_p(values: int, reference: int) -> float:
    """The smallest one-sided p-value of this many values without ties."""
    return 1 / comb(values + reference, values)


def _doubled_midranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of every value; equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for position in order[start:end]:
            ranks[position] = start + 1 + end  # twice the mean of start + 1 … end
        start = end
    return ranks


def _tails(ranks: tuple[int, ...], count: int, total: int) -> tuple[float, float]:
    sums = _ways(ranks, count)
    return sum(sums[: total + 1]), next(ways for ways in sums if ways)


@lru_cache(maxsize=4096)
def _ways(ranks: tuple[int, ...], count: int) -> tuple[float, ...]:
    """The number of ways to choose this many ranks, by their sum."""
    import numpy as np

    width = sum(sorted(ranks)[len(ranks) - count :]) + 1  # no choice has a larger sum
    ways = np.zeros((count + 1, width))
    ways[0, 0] = 1
    for rank in ranks:
        if rank >= width:
            continue
        # From a copy, so that each rank is chosen at most once.
        ways[1:, rank:] += ways[:-1, : width - rank].copy()
    found: tuple[float, ...] = tuple(ways[count].tolist())
    return found


def _normal(ranks: tuple[int, ...], count: int, total: int) -> float:
    """The normal approximation, corrected for ties and for continuity."""
    from scipy.special import ndtr

    size = len(ranks)
    mean = sum(ranks) / size
    spread = sum((rank - mean) ** 2 for rank in ranks) / (size - 1)
    variance = spread * count * (size - count) / size
    if variance == 0:
        return 1.0
    # Half of the smallest step between two sums.
    half = 0.5 if len(set(ranks)) == size else 1
    return float(ndtr((total + half - count * mean) / sqrt(variance)))
