"""A forest plot: estimates with their intervals, one track for each case or metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.report.plots.axis import Axis, Tick, absolute_percent
from mepof.statistics import Verdict

# The rest of the width, to the right, holds the values as text.
_LEFT, _RIGHT = 0.5, 63.0
_LABEL_HEIGHT, _MARK_HEIGHT, _GAP, _AXIS_HEIGHT = 20, 20, 4, 44
# Percent of the width that the words beside zero need on a phone.
_WORD_WIDTH = 15.0


@dataclass(frozen=True)
class Estimate:
    """An image's result.

    Attributes:
        image: its number.
        reduction_percent: how much less it costs than the baseline; negative for more.
        outliers: the reductions that outlying boots alone would give, in percent.
        less: the word for a reduction.
    """

    image: int
    reduction_percent: float
    interval_percent: tuple[float, float]
    verdict: Verdict
    outliers: tuple[float, ...] = ()
    less: str = "fewer"


@dataclass(frozen=True)
class Track:
    """The estimates of one case, or of a mean, under their label."""

    label: str
    estimates: Sequence[Estimate]
    note: str = ""
    mean: bool = False


@dataclass(frozen=True)
class Mark:
    """An estimate in the drawing: a bar from zero, a whisker, a marker, and crosses."""

    estimate: Estimate
    y: int
    x: float
    low: float
    high: float
    bar: float
    bar_width: float
    outliers: tuple[float, ...]


@dataclass(frozen=True)
class DrawnTrack:
    """A track and where it is."""

    track: Track
    y: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Forest:
    """A whole drawing; the axis lies below ``bottom``.

    Attributes:
        less: what is written to the right of zero, and ``more`` to its left; empty where there is
            no width for it.
    """

    height: int
    bottom: int
    zero: float
    ticks: tuple[Tick, ...]
    tracks: tuple[DrawnTrack, ...]
    less: str
    more: str


def forest_axis(tracks: Sequence[Track]) -> Axis:
    """An axis that spans some tracks, for several drawings to share."""
    every = [e for track in tracks for e in track.estimates]
    values = [v for e in every for v in (*e.interval_percent, e.reduction_percent, *e.outliers)]
    return Axis.over(values, _LEFT, _RIGHT)


def forest(tracks: Sequence[Track], shared: Axis | None = None, less: str = "fewer") -> Forest:
    """Lay out the tracks from the top.

    Args:
        shared: the axis; None for one that spans these tracks.
        less: the word for a reduction.
    """
    axis = shared or forest_axis(tracks)
    zero = axis.at(0.0)
    drawn: list[DrawnTrack] = []
    y = 0
    for track in tracks:
        top, marks = y, []
        y += _LABEL_HEIGHT
        for e in track.estimates:
            x = axis.at(e.reduction_percent)
            low, high = e.interval_percent
            marks.append(
                Mark(
                    estimate=e,
                    y=y + _MARK_HEIGHT // 2,
                    x=x,
                    low=axis.at(low),
                    high=axis.at(high),
                    bar=min(x, zero),
                    bar_width=round(abs(x - zero), 2),
                    outliers=tuple(map(axis.at, e.outliers)),
                )
            )
            y += _MARK_HEIGHT
        drawn.append(DrawnTrack(track, top, tuple(marks)))
        y += _GAP
    return Forest(
        height=y + _AXIS_HEIGHT,
        bottom=y,
        zero=zero,
        ticks=axis.ticks(absolute_percent),
        tracks=tuple(drawn),
        less=less if _RIGHT - zero >= _WORD_WIDTH else "",
        more="more" if zero - _LEFT >= _WORD_WIDTH else "",
    )
