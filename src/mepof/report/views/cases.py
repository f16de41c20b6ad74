"""The cases one by one: a forest plot for each main metric, and tables of all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.measure.metrics import METRICS, Metric
from mepof.report.metrics import MAIN, less_word
from mepof.report.model import CaseRow, Outlier, Report, SummaryRow, TrainingRow
from mepof.report.plots.forest import Estimate, Forest, Track, forest, forest_axis
from mepof.report.views.estimates import mean_estimate
from mepof.report.views.image_set import ImageSet


@dataclass(frozen=True)
class Table:
    """The cases of one image in one metric."""

    image: str
    rows: tuple[CaseRow, ...]
    overall: SummaryRow | None
    by_training: tuple[TrainingRow, ...]

    @property
    def means(self) -> list[tuple[str, SummaryRow]]:
        """The geometric means by their titles."""
        means = [("Geometric mean", self.overall)] if self.overall else []
        means += [(f"of {row.training} cases", row) for row in self.by_training]
        return means

    @property
    def has_suites(self) -> bool:
        """Whether the cases come from several suites."""
        return len({row.suite for row in self.rows}) > 1

    @property
    def knows_training(self) -> bool:
        """Whether it is known which cases are trained."""
        return any(row.training is not None for row in self.rows)

    @property
    def has_outliers(self) -> bool:
        """Whether any case has an outlier."""
        return any(row.outliers for row in self.rows)


@dataclass(frozen=True)
class MetricView:
    """Everything about one metric.

    Attributes:
        prominent: whether it is a main metric.
        plots: a forest plot for each suite; none where nothing was compared.
    """

    metric: Metric
    kind: str
    prominent: bool
    plots: tuple[tuple[str, Forest], ...]
    tables: tuple[Table, ...]

    @property
    def title(self) -> str:
        """The metric's title, with the kind of its figures."""
        title = self.metric.title
        return title if self.kind in title else f"{title}, {self.kind}"

    @property
    def less(self) -> str:
        """The word for a reduction."""
        return less_word(self.metric.name)


# With more rows the page would be slow to load; all are in cases.csv.
_MAX_ROWS = 1000


def metrics_of(report: Report, image_set: ImageSet) -> tuple[MetricView, ...]:
    """Every metric with measurements, except events if there are too many cases."""
    views = [view for m in METRICS if (view := _view(report, image_set, m)).tables]
    if sum(len(table.rows) for view in views for table in view.tables) > _MAX_ROWS:
        views = [view for view in views if not view.metric.may_be_none]
    return tuple(views)


def _view(report: Report, image_set: ImageSet, metric: Metric) -> MetricView:
    rows = [c for c in report.cases if c.metric == metric.name]
    totals = [s for s in report.summary if s.metric == metric.name]
    by_training = [r for r in report.by_training if r.metric == metric.name]
    # The numbers of an unsound image are in report.json, but no table presents them as a result.
    tables = tuple(
        Table(
            image.name,
            tuple(c for c in rows if c.image == image.name),
            next((s for s in totals if s.image == image.name), None),
            tuple(r for r in by_training if r.image == image.name),
        )
        for image in image_set.sound
        if any(c.image == image.name for c in rows)
    )
    return MetricView(
        metric=metric,
        kind=rows[0].kind if rows else "",
        prominent=metric in MAIN,
        plots=_plots(rows, totals, image_set) if metric in MAIN and totals else (),
        tables=tables,
    )


def _plots(
    rows: Sequence[CaseRow], totals: Sequence[SummaryRow], image_set: ImageSet
) -> tuple[tuple[str, Forest], ...]:
    by_suite: dict[str, dict[str, list[CaseRow]]] = {}
    for c in rows:
        if c.improvement_percent is not None and c.interval_percent is not None:
            by_suite.setdefault(c.suite, {}).setdefault(c.case, []).append(c)
    mean = Track(
        "Geometric mean",
        [mean_estimate(row, image_set) for row in totals],
        mean=True,
    )
    tracks = {
        suite: [
            Track(case, [_estimate(c, image_set) for c in found], note=_training_note(found))
            for case, found in cases.items()
        ]
        for suite, cases in by_suite.items()
    }
    if tracks:
        tracks[list(tracks)[-1]].append(mean)
    axis = forest_axis([track for some in tracks.values() for track in some])
    less = less_word(totals[0].metric)
    return tuple((suite, forest(some, axis, less)) for suite, some in tracks.items())


def _training_note(rows: Sequence[CaseRow]) -> str:
    """Whether a case is trained, where that is the same for all images."""
    known = {row.training for row in rows if row.training is not None}
    return known.pop() if len(known) == 1 else ""


def _estimate(row: CaseRow, image_set: ImageSet) -> Estimate:
    assert row.reduction_percent is not None and row.reduction_interval_percent is not None
    ratio = 1 - row.reduction_percent / 100
    return Estimate(
        image_set.numbers[row.image],
        row.reduction_percent,
        row.reduction_interval_percent,
        row.verdict,
        tuple(100 * (1 - ratio * _factor(outlier)) for outlier in row.outliers),
        less_word(row.metric),
    )


def _factor(outlier: Outlier) -> float:
    """By how much the image's cost, relative to the baseline's, would change if all boots were
    like this one."""
    cost = 1 + outlier.deviation_percent / 100
    return 1 / cost if outlier.baseline else cost
