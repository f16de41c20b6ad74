"""The same program over releases: how each image's gain went."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from mepof.report.metrics import MAIN
from mepof.report.model import SummaryRow
from mepof.report.plots.axis import Axis, Tick, absolute_percent
from mepof.web.catalogue import Entry
from mepof.web.reports import Headline

_VERSION = re.compile(r"\d+(?:[.-]\d+)+(?:-rc\d+)?")
_LEFT, _RIGHT = 6.0, 94.0
_TOP, _HEIGHT = 12, 220
_MAX_POINTS = 200
_MAX_LABELS = 6


@dataclass(frozen=True)
class Point:
    """An image of a run."""

    entry: Entry
    image: str
    kernel: str
    row: SummaryRow


@dataclass(frozen=True)
class Drawn:
    """A point in the drawing: ``x`` in percent of the width, the rest in pixels."""

    point: Point
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """An image over all releases, and its number."""

    image: str
    number: int
    points: tuple[Drawn, ...]


@dataclass(frozen=True)
class Trend:
    """One program.

    Attributes:
        program: its text, with the releases that it names replaced.
        releases: from the left to the right, at percent of the width; some have no label.
        ticks: of the vertical axis, at pixels.
    """

    program: str
    metric: str
    series: tuple[Series, ...]
    points: tuple[Point, ...]
    releases: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    height: int
    zero: float


def metrics_in(headlines: Iterable[Headline]) -> tuple[str, ...]:
    """The main metrics that any report has."""
    named = {row.metric for headline in headlines for row in headline.summary}
    return tuple(metric.name for metric in MAIN if metric.name in named)


def trends_of(runs: Iterable[tuple[Entry, Sequence[Headline]]], metric: str) -> tuple[Trend, ...]:
    """The programs that have run, the one with most results first.

    Args:
        runs: with their reports.
    """
    points: dict[str, list[Point]] = {}
    for entry, headlines in runs:
        for headline in headlines:
            for row in headline.summary:
                if row.metric == metric:
                    # A run with two reports has two programs, as far as trends go.
                    key = f"{template_of(entry.run.program)}\n{headline.name}"
                    points.setdefault(key, []).append(Point(entry, row.image, headline.kernel, row))
    trends = (
        _trend(key.rpartition("\n")[0], metric, sorted(found, key=_position)[-_MAX_POINTS:])
        for key, found in points.items()
    )
    return tuple(sorted(trends, key=lambda t: (-len(t.points), t.program)))


def template_of(program: str) -> str:
    """A program without the releases that it names, so that those of a watch are one."""
    return _VERSION.sub("…", program)


def _position(point: Point) -> tuple[tuple[int, ...], str]:
    found = _VERSION.search(point.kernel)
    text = found[0] if found else ""
    main, _, candidate = text.partition("-rc")
    version = [*map(int, re.findall(r"\d+", main)), *[0] * 6][:6]
    # 6.12-rc3 is before 6.12.
    return (*version, int(candidate) if candidate else 1 << 30), point.entry.run.started


def _trend(program: str, metric: str, points: list[Point]) -> Trend:
    columns = list(dict.fromkeys((p.kernel, p.entry.run.id) for p in points))
    width = (_RIGHT - _LEFT) / max(1, len(columns) - 1)
    middle = (_LEFT + _RIGHT) / 2
    at = {
        column: round(_LEFT + width * i, 2) if len(columns) > 1 else middle
        for i, column in enumerate(columns)
    }
    ends = [v for p in points for v in (p.row.geomean_reduction_percent, *_interval(p.row))]
    # An axis from the bottom to the top: what is less is better, and lies higher.
    axis = Axis.over(ends, float(_TOP + _HEIGHT), float(_TOP))
    images = list(dict.fromkeys(p.image for p in points))
    return Trend(
        program,
        metric,
        tuple(
            Series(
                image,
                number,
                tuple(
                    Drawn(
                        p,
                        at[p.kernel, p.entry.run.id],
                        axis.at(p.row.geomean_reduction_percent),
                        *map(axis.at, _interval(p.row)),
                    )
                    for p in points
                    if p.image == image
                ),
            )
            for number, image in enumerate(images, 1)
        ),
        tuple(reversed(points)),
        tuple(
            (at[column], _short(column[0]) if i % ceil(len(columns) / _MAX_LABELS) == 0 else "")
            for i, column in enumerate(columns)
        ),
        axis.ticks(absolute_percent),
        _TOP + _HEIGHT,
        axis.at(0.0),
    )


def _interval(row: SummaryRow) -> tuple[float, float]:
    if row.interval_method == "none":
        return row.geomean_reduction_percent, row.geomean_reduction_percent
    return row.reduction_interval_percent


def _short(kernel: str) -> str:
    found = _VERSION.search(kernel)
    return found[0] if found else kernel[:12]
