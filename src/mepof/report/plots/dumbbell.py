"""Dumbbell plots: values before and after on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.report.plots.axis import Axis, Tick, plain_percent

_LEFT, _RIGHT = 0.5, 80.0
_LABEL_HEIGHT, _LINE_HEIGHT, _AXIS_HEIGHT = 18, 18, 26


@dataclass(frozen=True)
class Change:
    """A line of the drawing."""

    label: str
    y: int
    before: float
    after: float
    difference: float


@dataclass(frozen=True)
class Changes:
    """A whole drawing."""

    height: int
    bottom: int
    ticks: tuple[Tick, ...]
    lines: tuple[Change, ...]


def changes(values: Sequence[tuple[str, float, float]]) -> Changes:
    """Lay out labelled shares before and after, in percent, from the top."""
    axis = Axis.over((v for _, *both in values for v in both), _LEFT, _RIGHT)
    height = _LABEL_HEIGHT + _LINE_HEIGHT
    lines = tuple(
        Change(label, number * height, axis.at(before), axis.at(after), after - before)
        for number, (label, before, after) in enumerate(values)
    )
    bottom = len(lines) * height
    return Changes(bottom + _AXIS_HEIGHT, bottom, axis.ticks(plain_percent), lines)
