"""``report.html``: one file with nothing outside it, for people who look rather than read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from mepof.evaluate.measurement import METRICS, Metric
from mepof.evaluate.report import text
from mepof.evaluate.report.model import CaseRow, Image, Report, SummaryRow, TrainingRow
from mepof.evaluate.report.plot import Plot, Point, improvement_plot

_PLOTTED = ("kernel_instructions", "kernel_taken_branches")
_KINDS = {
    "build": "Building",
    "boot": "Booting",
    "run": "Running",
    "convert": "Converting",
    "other": "Other",
}


@dataclass(frozen=True)
class MetricTable:
    """The cases of one image in one metric."""

    image: str
    rows: tuple[CaseRow, ...]
    overall: SummaryRow | None
    apart: tuple[TrainingRow, ...] = ()

    @property
    def means(self) -> list[tuple[str, SummaryRow]]:
        """The geometric means by their titles."""
        means = [("Geometric mean", self.overall)] if self.overall else []
        apart = [("of trained cases" if row.trained else "of others", row) for row in self.apart]
        return [*means, *apart]

    @property
    def knows_training(self) -> bool:
        """Whether it is known which cases the training ran."""
        return any(row.trained is not None for row in self.rows)

    @property
    def has_outliers(self) -> bool:
        """Whether any case has one."""
        return any(row.outliers for row in self.rows)


@dataclass(frozen=True)
class MetricView:
    """Everything about one metric: its plot, if there is a comparison, and its tables."""

    metric: Metric
    kind: str
    plot: Plot | None
    tables: tuple[MetricTable, ...]
    prominent: bool


@dataclass(frozen=True)
class Headline:
    """What one image came to in the metric that counts most."""

    image: Image
    row: SummaryRow | None
    title: str
    cost_percent: float | None


@dataclass(frozen=True)
class PhaseShare:
    """All steps of a kind that ran now, and their share of the longest kind's time."""

    title: str
    seconds: float
    width: float


def render(report: Report) -> str:
    """The page of a report."""
    subjects = [i for i in report.images if not i.baseline]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            headlines=[_headline(report, image) for image in subjects],
            metrics=[v for v in (_metric_view(report, m, subjects) for m in METRICS) if v.tables],
            subjects=subjects,
            shares=_shares(report),
            longest=max((p.seconds for p in report.phases), default=0.0),
            reference=next((i for i in report.images if i.baseline), None),
            kinds=_KINDS,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mepof.evaluate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: text.printable(v, keep="\n\t") if type(v) is str else v,
    )
    for function in (
        text.percent,
        text.interval,
        text.amount,
        text.duration,
        text.size,
        text.outliers,
    ):
        environment.filters[function.__name__] = function
    return environment


def _headline(report: Report, image: Image) -> Headline:
    for metric in METRICS:
        for row in report.summary:
            if not metric.control and (row.image, row.metric) == (image.name, metric.name):
                ratio = 1 + row.geomean_improvement_percent / 100
                return Headline(image, row, metric.title, 100 * (1 / ratio - 1))
    return Headline(image, None, METRICS[0].title, None)


def _metric_view(report: Report, metric: Metric, subjects: Sequence[Image]) -> MetricView:
    rows = [c for c in report.cases if c.metric == metric.name]
    totals = [s for s in report.summary if s.metric == metric.name]
    numbers = {image.name: number for number, image in enumerate(subjects)}
    # What an unsound image measured is in report.json, but no table makes it look like a result.
    tables = tuple(
        MetricTable(
            image.name,
            tuple(c for c in rows if c.image == image.name),
            next((s for s in totals if s.image == image.name), None),
            tuple(
                row
                for row in report.by_training
                if (row.image, row.metric) == (image.name, metric.name)
            ),
        )
        for image in subjects
        if image.sound and any(c.image == image.name for c in rows)
    )
    return MetricView(
        metric=metric,
        kind=rows[0].kind if rows else "",
        plot=_plot(rows, totals, numbers) if totals else None,
        tables=tables,
        prominent=metric.name in _PLOTTED,
    )


def _plot(rows: Sequence[CaseRow], totals: Sequence[SummaryRow], numbers: dict[str, int]) -> Plot:
    tracks: dict[tuple[str, str], list[Point]] = {}
    for c in rows:
        if c.improvement_percent is not None and c.interval_percent is not None:
            tracks.setdefault((c.suite, c.case), []).append(
                Point(numbers[c.image], c.improvement_percent, c.interval_percent, c.verdict)
            )
    overall = [
        Point(numbers[s.image], s.geomean_improvement_percent, s.interval_percent, s.verdict)
        for s in totals
    ]
    return improvement_plot([(case, points) for (_, case), points in tracks.items()], overall)


def _shares(report: Report) -> list[PhaseShare]:
    made = {
        kind: sum(p.seconds for p in report.phases if p.kind == kind and not p.cached)
        for kind in _KINDS
    }
    longest = max(made.values()) or 1.0
    return [PhaseShare(_KINDS[k], s, 100 * s / longest) for k, s in made.items() if s]
