"""Runs side by side: the images of all of them by case, each against the baseline of its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, log1p

from mepof.report.metrics import MAIN, less_word
from mepof.report.model import Report
from mepof.report.plots.forest import Estimate, Forest, Track, forest, forest_axis
from mepof.statistics import Verdict, reduction_percent
from mepof.statistics.difference import Bounded, difference

_MEAN = "geometric mean"


@dataclass(frozen=True)
class Subject:
    """A report of a run, with a name that tells it from the others."""

    name: str
    report: Report


@dataclass(frozen=True)
class Cell:
    """An image's result in one case; percent less than its baseline.

    Attributes:
        interval: None where there is none.
    """

    reduction: float
    interval: tuple[float, float] | None
    verdict: Verdict


@dataclass(frozen=True)
class Change:
    """From one image to another, percent less.

    Attributes:
        interval: None where one of the two has none.
    """

    reduction: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Line:
    """A case, or the geometric mean.

    Attributes:
        cells: one for each image; None where it was not measured.
        changes: one for each pair of images; None unless both were measured.
    """

    label: str
    cells: tuple[Cell | None, ...]
    changes: tuple[Change | None, ...]


@dataclass(frozen=True)
class Compared:
    """The whole comparison in one metric.

    Attributes:
        images: the names of what is compared, in the order of all cells.
        numbers: of each in the drawing.
        pairs: between which images changes are given: first and second, as positions.
        baselines: by run, the digest of its baseline.
    """

    metric: str
    metrics: tuple[str, ...]
    less: str
    images: tuple[str, ...]
    numbers: Mapping[str, int]
    pairs: tuple[tuple[int, int], ...]
    baselines: Mapping[str, str]
    lines: tuple[Line, ...]
    plot: Forest

    @property
    def same_baseline(self) -> bool:
        """Whether all runs compare with the same build."""
        return len(set(self.baselines.values())) == 1


def compared(subjects: Sequence[Subject], metric: str = "") -> Compared | None:
    """Compare reports.

    Args:
        metric: its name; the first that all have if it is another.

    Returns:
        None where no metric is in all of them.
    """
    offered = tuple(
        m.name
        for m in MAIN
        if subjects and all(any(r.metric == m.name for r in s.report.summary) for s in subjects)
    )
    if not offered:
        return None
    metric = metric if metric in offered else offered[0]
    columns = [
        (subject, image.name)
        for subject in subjects
        for image in subject.report.images
        if not image.baseline and image.sound
    ]
    images = tuple(f"{subject.name}: {image}" for subject, image in columns)
    found = [_cells(subject.report, image, metric) for subject, image in columns]
    labels = dict.fromkeys(label for cells in found for label in cells if label != _MEAN)
    pairs = tuple(_pairs([(subject.name, image) for subject, image in columns]))
    lines = tuple(
        _line(label, [cells.get(label) for cells in found], pairs) for label in (_MEAN, *labels)
    )
    less = less_word(metric)
    tracks = [_track(line, less) for line in lines]
    return Compared(
        metric,
        offered,
        less,
        images,
        {name: number for number, name in enumerate(images, 1)},
        pairs,
        {
            subject.name: image.digest
            for subject in subjects
            for image in subject.report.images
            if image.baseline
        },
        lines,
        forest(tracks, forest_axis(tracks), less),
    )


def _pairs(columns: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """An image of the first run with those of its name in later runs; of a run alone, or where
    names differ, the first image with all others."""
    if not columns:
        return
    first = columns[0][0]
    later = [i for i, (run, _) in enumerate(columns) if run != first]
    by_name = {image: i for i, (run, image) in enumerate(columns) if run == first}
    alike = [(by_name[columns[i][1]], i) for i in later if columns[i][1] in by_name]
    yield from alike or ((0, i) for i in later or range(1, len(columns)))


def _cells(report: Report, image: str, metric: str) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for row in report.summary:
        if (row.image, row.metric) == (image, metric):
            known = row.interval_method != "none"
            interval = row.reduction_interval_percent if known else None
            cells[_MEAN] = Cell(row.geomean_reduction_percent, interval, row.verdict)
    for case in report.cases:
        if (case.image, case.metric) == (image, metric) and case.reduction_percent is not None:
            known = case.interval_method not in (None, "none")
            interval = case.reduction_interval_percent if known else None
            cells[f"{case.suite}/{case.case}"] = Cell(
                case.reduction_percent, interval, case.verdict
            )
    return cells


def _line(label: str, cells: Sequence[Cell | None], pairs: Sequence[tuple[int, int]]) -> Line:
    changes = tuple(_change(cells[first], cells[second]) for first, second in pairs)
    return Line(label, tuple(cells), changes)


def _change(first: Cell | None, second: Cell | None) -> Change | None:
    if first is None or second is None:
        return None
    # Ratios of costs are compared, so the computation is on their logarithms.
    made = difference(_log(first), _log(second))
    bounded = first.interval is not None and second.interval is not None
    ends = (_reduction(made.low), _reduction(made.high)) if bounded else None
    return Change(_reduction(made.value), ends)


def _log(cell: Cell) -> Bounded:
    """The logarithm of baseline / cost."""
    low, high = cell.interval or (cell.reduction, cell.reduction)
    return Bounded(*(-log1p(-value / 100) for value in (cell.reduction, low, high)))


def _reduction(value: float) -> float:
    """The logarithm of an improvement as percent less."""
    return reduction_percent(100 * expm1(value))


def _track(line: Line, less: str) -> Track:
    estimates = [
        Estimate(
            number,
            cell.reduction,
            cell.interval or (cell.reduction, cell.reduction),
            cell.verdict,
            less=less,
        )
        for number, cell in enumerate(line.cells, 1)
        if cell is not None
    ]
    return Track(line.label, estimates, mean=line.label == _MEAN)
