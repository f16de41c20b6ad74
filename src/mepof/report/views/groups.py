"""The geometric means by group of cases: a plot and a table for each main metric."""

from __future__ import annotations

from dataclasses import dataclass

from mepof.measure.metrics import Metric
from mepof.report.metrics import MAIN, less_word
from mepof.report.model import GroupRow, Report
from mepof.report.plots.forest import Forest, Track, forest
from mepof.report.views.estimates import mean_estimate
from mepof.report.views.image_set import ImageSet


@dataclass(frozen=True)
class GroupsView:
    """One metric.

    Attributes:
        kind: of its figures, unless the title says it.
        plot: a track for each group, and the mean over all cases.
    """

    metric: Metric
    kind: str
    plot: Forest
    rows: tuple[GroupRow, ...]


def groups_of(report: Report, image_set: ImageSet) -> tuple[GroupsView, ...]:
    """The metrics whose cases are of several groups."""
    views = (_view(report, image_set, metric) for metric in MAIN)
    return tuple(view for view in views if view is not None)


def _view(report: Report, image_set: ImageSet, metric: Metric) -> GroupsView | None:
    rows = tuple(row for row in report.by_group if row.metric == metric.name)
    groups = tuple(dict.fromkeys(row.group for row in rows))
    if len(groups) < 2:
        return None
    tracks = []
    for group in groups:
        ours = [row for row in rows if row.group == group]
        tracks.append(
            Track(group, [mean_estimate(row, image_set) for row in ours], _cases(ours[0]))
        )
    totals = [row for row in report.summary if row.metric == metric.name]
    tracks.append(
        Track("Geometric mean", [mean_estimate(row, image_set) for row in totals], mean=True)
    )
    kind = rows[0].kind
    return GroupsView(
        metric=metric,
        kind="" if kind in metric.title else kind,
        plot=forest(tracks, less=less_word(metric.name)),
        rows=rows,
    )


def _cases(row: GroupRow) -> str:
    return f"{row.cases} case{'' if row.cases == 1 else 's'}"
