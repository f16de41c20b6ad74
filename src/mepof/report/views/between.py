"""Images against each other: a table for each main metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mepof.measure.metrics import Metric
from mepof.report.metrics import MAIN, SIGNS, TONES, less_word
from mepof.report.model import Report
from mepof.report.text import relative
from mepof.report.views.image_set import ImageSet
from mepof.statistics import Verdict, reduction_percent

_OPPOSITE: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


@dataclass(frozen=True)
class Cell:
    """An image against another one.

    Attributes:
        text: the change in words.
        sign: of the verdict, and its style class.
    """

    text: str
    sign: str
    tone: str


@dataclass(frozen=True)
class BetweenView:
    """One metric.

    Attributes:
        kind: of its figures, unless the title says it.
        names: of the images, the baseline first.
        rows: for each image its cells against all of them; None against itself.
    """

    metric: Metric
    kind: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


def between_of(report: Report, image_set: ImageSet) -> tuple[BetweenView, ...]:
    """The main metrics in which more than two images were measured."""
    return tuple(_views(report, image_set)) if report.between else ()


def _views(report: Report, image_set: ImageSet) -> Iterator[BetweenView]:
    names = tuple(image.name for image in image_set.all_sound)
    compared = [(row, report.baseline or "") for row in report.summary]
    compared += [(row, row.against) for row in report.between]
    for metric in MAIN:
        cells: dict[tuple[str, str], Cell] = {}
        kind = ""
        for row, against in compared:
            if row.metric == metric.name:
                kind = row.kind
                gain = row.geomean_improvement_percent
                cells[row.image, against] = _cell(gain, row.verdict, metric)
                # The other way round, baseline and value change places.
                inverse = -reduction_percent(gain)
                opposite = _OPPOSITE.get(row.verdict, row.verdict)
                cells[against, row.image] = _cell(inverse, opposite, metric)
        if cells:
            rows = tuple((one, tuple(cells.get((one, other)) for other in names)) for one in names)
            yield BetweenView(metric, "" if kind in metric.title else kind, names, rows)


def _cell(improvement: float, verdict: Verdict, metric: Metric) -> Cell:
    text = relative(reduction_percent(improvement), less_word(metric.name))
    return Cell(text, SIGNS[verdict], TONES[verdict])
