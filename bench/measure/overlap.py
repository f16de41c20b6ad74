"""How like the training's work a case is: by the kernel code that both execute, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Counts = Mapping[str, float]

#: By the percent of overlap that each begins with.
KINDS = {"trained": 98.0, "near": 60.0, "far": 0.0}


@dataclass(frozen=True)
class Likeness:
    """How like the actions of a training a case is.

    Attributes:
        percent: overlap with all of them.
        nearest: the action with the largest overlap by itself.
        nearest_percent: that overlap.
    """

    percent: float
    nearest: str
    nearest_percent: float


def likeness(case: Counts, actions: Mapping[str, Counts]) -> Likeness:
    """Compare a case with actions.

    A function's *share* is the part of all counts that lies in it. The overlap with an action is
    the sum over the functions of the smaller of the two shares: 100 % if both distribute their work
    alike, 0 % if no function is in both. The overlap with a training takes each function's largest
    share among the actions. So code counts as trained as far as some action spends as much of
    its work there as the case does, and a case that does what two actions do is as near as one
    that repeats a single action.

    Args:
        case: counts by function.
        actions: the same, by the action's name; not empty.
    """
    shares = _shares(case)
    by_action = {name: _shares(counts) for name, counts in actions.items()}
    overlaps = {name: _overlap(shares, of) for name, of in by_action.items()}
    nearest = max(overlaps, key=lambda name: overlaps[name])
    largest: dict[str, float] = {}
    for of in by_action.values():
        for function, share in of.items():
            largest[function] = max(share, largest.get(function, 0.0))
    return Likeness(100 * _overlap(shares, largest), nearest, 100 * overlaps[nearest])


def kind_of(percent: float) -> str:
    """Whether work is trained, near or far, by its overlap with the training."""
    return next(kind for kind, least in KINDS.items() if percent >= least)


def _shares(counts: Counts) -> dict[str, float]:
    every = sum(counts.values())
    return {function: count / every for function, count in counts.items()} if every else {}


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return sum(min(share, other.get(function, 0.0)) for function, share in one.items())
