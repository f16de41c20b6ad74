"""Where things stand in the improvement plot; the template draws it.

Horizontal positions are percent of the drawing's width and vertical ones pixels, so that the
plot fills a phone as well as a page while its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from mepof.evaluate.statistics import Verdict

_LEFT, _RIGHT = 1.5, 78.0
"""The axis' share of the width; the rest to its right holds the values as text."""

_LABEL_HEIGHT, _MARK_HEIGHT, _AXIS_HEIGHT = 20, 20, 26


@dataclass(frozen=True)
class Point:
    """An estimate to plot: which image it is of (by its number), and what was found."""

    image: int
    improvement_percent: float
    interval_percent: tuple[float, float]
    verdict: Verdict


@dataclass(frozen=True)
class Mark:
    """A point in the drawing: a bar from zero, a whisker over the interval, a dot."""

    point: Point
    y: int
    x: float
    low: float
    high: float
    bar: float
    bar_width: float


@dataclass(frozen=True)
class Track:
    """The marks of one case, or of the geometric mean, under their label."""

    label: str
    overall: bool
    y: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Plot:
    """A whole drawing; ``ticks`` are position and value in percent."""

    height: int
    bottom: int
    zero: float
    ticks: tuple[tuple[float, str], ...]
    tracks: tuple[Track, ...]


def improvement_plot(
    cases: Sequence[tuple[str, Sequence[Point]]], overall: Sequence[Point]
) -> Plot:
    """Lay out one track for each case and a last one for the geometric mean."""
    rows = [*((label, points, False) for label, points in cases), ("Geometric mean", overall, True)]
    ends = [e for _, points, _ in rows for p in points for e in p.interval_percent]
    low, high = min(0.0, *ends), max(0.0, *ends)
    if high == low:
        low, high = -1.0, 1.0
    scale = (_RIGHT - _LEFT) / (high - low)

    def at(value: float) -> float:
        return round(_LEFT + (value - low) * scale, 3)

    tracks: list[Track] = []
    y = 0
    for label, points, is_overall in rows:
        top, marks = y, []
        y += _LABEL_HEIGHT
        for point in points:
            x, zero = at(point.improvement_percent), at(0.0)
            marks.append(
                Mark(
                    point=point,
                    y=y + _MARK_HEIGHT // 2,
                    x=x,
                    low=at(point.interval_percent[0]),
                    high=at(point.interval_percent[1]),
                    bar=min(x, zero),
                    bar_width=round(abs(x - zero), 3),
                )
            )
            y += _MARK_HEIGHT
        tracks.append(Track(label, is_overall, top, tuple(marks)))
    ticks = tuple((at(value), text) for value, text in _ticks(low, high))
    return Plot(y + _AXIS_HEIGHT, y, at(0.0), ticks, tuple(tracks))


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round values, about four, zero among them."""
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough)
    decimals = max(0, -floor(log10(step)))
    values = [i * step for i in range(ceil(low / step), floor(high / step) + 1)]
    return [
        (v, f"{v:+.{decimals}f} %".replace("-", "\N{MINUS SIGN}") if v else "0") for v in values
    ]
