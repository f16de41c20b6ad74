"""Bars from zero: costs of images side by side, ranges of latencies, parts of a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.report.plots.axis import Axis, Tick, plain_percent

_LEFT, _RIGHT, _STACK_RIGHT = 0.0, 56.0, 79.0
_LABEL_HEIGHT, _BAR_HEIGHT, _GAP, _AXIS_HEIGHT = 18, 18, 4, 26


@dataclass(frozen=True)
class Bar:
    """An image's bar.

    Attributes:
        image: its number.
        text: the value as people read it.
        marks: further values to mark, such as percentiles; the bar then spans them.
    """

    image: int
    value: float
    text: str
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Group:
    """Bars of one quantity, under its name."""

    label: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class DrawnBar:
    """A bar and where it is."""

    bar: Bar
    y: int
    x: float
    width: float
    marks: tuple[float, ...]


@dataclass(frozen=True)
class DrawnGroup:
    """A group and where it is."""

    label: str
    y: int
    bars: tuple[DrawnBar, ...]


@dataclass(frozen=True)
class Panel:
    """A small drawing; ``reference`` is where the baseline's line is drawn, if it has one."""

    height: int
    bottom: int
    reference: float | None
    groups: tuple[DrawnGroup, ...]


def panel(groups: Sequence[Group], end: float | None, reference: float | None) -> Panel:
    """Lay out the groups from the top.

    Args:
        end: of the axis that all groups share; None for an axis of its own for each group.
        reference: a value to mark.
    """
    drawn: list[DrawnGroup] = []
    y = 0
    common = Axis(0.0, end or 1.0, _LEFT, _RIGHT)
    for group in groups:
        values = [v for bar in group.bars for v in (bar.value, *bar.marks)]
        axis = common if end else Axis(0.0, max(values, default=0.0) or 1.0, _LEFT, _RIGHT)
        top, bars = y, []
        y += _LABEL_HEIGHT
        for bar in group.bars:
            left = axis.at(min(bar.marks)) if bar.marks else _LEFT
            right = axis.at(max((bar.value, *bar.marks)))
            marks = tuple(map(axis.at, bar.marks))
            bars.append(DrawnBar(bar, y, left, round(right - left, 2), marks))
            y += _BAR_HEIGHT
        drawn.append(DrawnGroup(group.label, top, tuple(bars)))
        y += _GAP
    return Panel(y, y, None if reference is None else common.at(reference), tuple(drawn))


@dataclass(frozen=True)
class Segment:
    """A part of a stacked bar; ``labelled`` if it is wide enough for its letter."""

    part: int
    x: float
    width: float
    labelled: bool


@dataclass(frozen=True)
class Stack:
    """One image's stacked bar."""

    image: int
    y: int
    end: float
    total: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class StackTrack:
    """The stacked bars of one case, under its label."""

    label: str
    y: int
    mean: bool
    stacks: tuple[Stack, ...]


@dataclass(frozen=True)
class Stacks:
    """A whole drawing."""

    height: int
    bottom: int
    ticks: tuple[Tick, ...]
    tracks: tuple[StackTrack, ...]


Parts = tuple[int, Sequence[float]]
"""An image's number, and its parts in percent."""


def stacks(tracks: Sequence[tuple[str, bool, Sequence[Parts]]]) -> Stacks:
    """Lay out stacked bars of parts in percent.

    Args:
        tracks: label, whether it is a mean, and the parts of each image.
    """
    wholes = [sum(parts) for _, _, images in tracks for _, parts in images]
    axis = Axis.over(wholes, _LEFT, _STACK_RIGHT)
    drawn: list[StackTrack] = []
    y = 0
    for label, mean, images in tracks:
        top, made = y, []
        y += _LABEL_HEIGHT
        for image, parts in images:
            segments, reached = [], 0.0
            for number, part in enumerate(parts):
                x, end = axis.at(reached), axis.at(reached + part)
                reached += part
                if end > x:
                    width = round(end - x, 2)
                    segments.append(Segment(number, x, width, width > 3.5))
            made.append(Stack(image, y, axis.at(reached), reached, tuple(segments)))
            y += _BAR_HEIGHT + 2
        drawn.append(StackTrack(label, top, mean, tuple(made)))
        y += _GAP
    return Stacks(y + _AXIS_HEIGHT, y, axis.ticks(plain_percent), tuple(drawn))


def line_up(values: Sequence[float]) -> tuple[Segment, ...]:
    """Lay out the parts of a whole one after the other, across the whole width."""
    whole = sum(values) or 1.0
    segments: list[Segment] = []
    reached = 0.0
    for number, value in enumerate(values):
        x, width = 100 * reached / whole, 100 * value / whole
        segments.append(Segment(number, round(x, 2), round(width, 2), width > 3.5))
        reached += value
    return tuple(segments)
