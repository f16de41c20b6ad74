"""The suites as small multiples: a panel for each case, all images in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mepof.report.detail import Figure
from mepof.report.model import Report
from mepof.report.plots.bars import Bar, Group, Panel, panel
from mepof.report.text import figure, plain_percent
from mepof.report.views.image_set import ImageSet
from mepof.report.views.result import MAIN

_PERCENTILES = ("p50", "p90", "p99")
_REFERENCE = 100.0


@dataclass(frozen=True)
class CasePanels:
    """A case: costs in percent of the baseline's, and what it told of itself."""

    case: str
    costs: Panel | None
    told: Panel | None


@dataclass(frozen=True)
class SuiteView:
    """A suite.

    Attributes:
        figures: by case and figure, the images' in their order; None where one has none.
        unsupported: by case, image and what it lacks.
    """

    suite: str
    panels: tuple[CasePanels, ...]
    figures: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    unsupported: tuple[tuple[str, str, str], ...]


def suites_of(report: Report, image_set: ImageSet) -> tuple[SuiteView, ...]:
    """The suites that there is something to show of."""
    measured = [row.suite for row in report.cases]
    lacking = [case.partition("/")[0] for image in report.images for case in image.unsupported]
    views = [_suite(report, image_set, suite) for suite in dict.fromkeys([*measured, *lacking])]
    return tuple(view for view in views if view.panels or view.figures or view.unsupported)


def _suite(report: Report, image_set: ImageSet, suite: str) -> SuiteView:
    cases = dict.fromkeys(row.case for row in report.cases if row.suite == suite)
    costs = {case: [*_costs(report, image_set, suite, case)] for case in cases}
    most = max(
        (bar.value for groups in costs.values() for group in groups for bar in group.bars),
        default=_REFERENCE,
    )
    ours = [f for f in report.figures if f.suite == suite and f.image in image_set.numbers]
    panels = []
    for case in cases:
        told = [*_told(image_set, [f for f in ours if f.case == case])]
        if not (costs[case] or told):
            continue
        panels.append(
            CasePanels(
                case=case,
                costs=panel(costs[case], max(most, _REFERENCE), _REFERENCE)
                if costs[case]
                else None,
                told=panel(told, None, None) if told else None,
            )
        )
    by_key = {(f.case, f.figure, f.image): f for f in ours}
    images = [image.name for image in image_set.all_sound]
    return SuiteView(
        suite=suite,
        panels=tuple(panels),
        figures=tuple(
            (case, name, tuple(by_key.get((case, name, image)) for image in images))
            for case, name in dict.fromkeys((f.case, f.figure) for f in ours)
        ),
        unsupported=tuple(
            (case.partition("/")[2], image.name, needs)
            for image in report.images
            for case, needs in image.unsupported.items()
            if case.partition("/")[0] == suite
        ),
    )


def _costs(report: Report, image_set: ImageSet, suite: str, case: str) -> Iterator[Group]:
    """Costs in percent of the baseline's, by main metric."""
    sound = {image.name for image in image_set.sound}
    for metric in MAIN:
        rows = [
            row
            for row in report.cases
            if (row.suite, row.case, row.metric) == (suite, case, metric.name)
            and row.image in sound
            and row.baseline
            and row.value is not None
        ]
        bars = [
            Bar(image_set.numbers[row.image], share, plain_percent(share))
            for row in rows
            if row.baseline and row.value is not None
            for share in (100 * row.value / row.baseline,)
        ]
        if bars:
            yield Group(metric.title, bars)


def _told(image_set: ImageSet, figures: Sequence[Figure]) -> Iterator[Group]:
    """Latencies from the median to the 99th percentile, and throughput."""
    by_image: dict[str, dict[str, Figure]] = {}
    for one in figures:
        by_image.setdefault(one.image, {})[one.figure] = one
    latencies = [
        Bar(
            image_set.numbers[image],
            told["p99"].value,
            figure(told["p50"].value, "ns"),
            tuple(told[name].value for name in _PERCENTILES),
        )
        for image, told in by_image.items()
        if all(name in told for name in _PERCENTILES)
    ]
    if latencies:
        yield Group("Latency: p50, p90, p99", latencies)
    moved = [
        Bar(
            image_set.numbers[image],
            told["throughput"].value,
            figure(told["throughput"].value, "bytes/s"),
        )
        for image, told in by_image.items()
        if "throughput" in told
    ]
    if moved:
        yield Group("Throughput", moved)
