"""The suites as small multiples: a panel for each case, all images in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mepof.report.detail import Figure
from mepof.report.metrics import MAIN, less_word
from mepof.report.model import Report
from mepof.report.plots.bars import Bar, Group, Panel, panel
from mepof.report.text import figure, relative
from mepof.report.views.image_set import ImageSet

_PERCENTILES = ("p50", "p90", "p99")
_REFERENCE = 100.0


@dataclass(frozen=True)
class CasePanels:
    """A case: costs in percent of the baseline's, and the figures that it printed."""

    case: str
    costs: Panel | None
    printed: Panel | None


@dataclass(frozen=True)
class SuiteView:
    """A suite.

    Attributes:
        figures: by case and name of the figure, one for each image; None where it printed none.
        unsupported: case, image and what the image would need.
    """

    suite: str
    panels: tuple[CasePanels, ...]
    figures: tuple[tuple[str, str, tuple[Figure | None, ...]], ...]
    unsupported: tuple[tuple[str, str, str], ...]


def suites_of(report: Report, image_set: ImageSet) -> tuple[SuiteView, ...]:
    """The suites that have something to show."""
    measured = [row.suite for row in report.cases]
    unsupported = [case.partition("/")[0] for image in report.images for case in image.unsupported]
    views = [_suite(report, image_set, suite) for suite in dict.fromkeys([*measured, *unsupported])]
    return tuple(view for view in views if view.panels or view.figures or view.unsupported)


def _suite(report: Report, image_set: ImageSet, suite: str) -> SuiteView:
    cases = dict.fromkeys(row.case for row in report.cases if row.suite == suite)
    costs = {case: [*_costs(report, image_set, suite, case)] for case in cases}
    largest = max(
        (bar.value for groups in costs.values() for group in groups for bar in group.bars),
        default=_REFERENCE,
    )
    ours = [f for f in report.figures if f.suite == suite and f.image in image_set.numbers]
    panels = []
    for case in cases:
        printed = [*_printed(image_set, [f for f in ours if f.case == case])]
        if not (costs[case] or printed):
            continue
        panels.append(
            CasePanels(
                case=case,
                costs=panel(costs[case], max(largest, _REFERENCE), _REFERENCE)
                if costs[case]
                else None,
                printed=panel(printed, None, None) if printed else None,
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
            Bar(image_set.numbers[row.image], share, relative(100 - share, less_word(metric.name)))
            for row in rows
            if row.baseline and row.value is not None
            for share in (100 * row.value / row.baseline,)
        ]
        if bars:
            yield Group(metric.title, bars)


def _printed(image_set: ImageSet, figures: Sequence[Figure]) -> Iterator[Group]:
    """Latencies from the median to the 99th percentile, and throughput."""
    by_image: dict[str, dict[str, Figure]] = {}
    for one in figures:
        by_image.setdefault(one.image, {})[one.figure] = one
    latencies = [
        Bar(
            image_set.numbers[image],
            printed["p99"].value,
            figure(printed["p50"].value, "ns"),
            tuple(printed[name].value for name in _PERCENTILES),
        )
        for image, printed in by_image.items()
        if all(name in printed for name in _PERCENTILES)
    ]
    if latencies:
        yield Group("Latency: p50, p90, p99", latencies)
    moved = [
        Bar(
            image_set.numbers[image],
            printed["throughput"].value,
            figure(printed["throughput"].value, "bytes/s"),
        )
        for image, printed in by_image.items()
        if "throughput" in printed
    ]
    if moved:
        yield Group("Throughput", moved)
