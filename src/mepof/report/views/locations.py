"""Where in the kernels the work is done: heatmaps, executed text, and functions."""

from __future__ import annotations

from dataclasses import dataclass

from mepof.report.detail import Footprint, FunctionShare, HeatmapCase, Heatmaps
from mepof.report.model import Report
from mepof.report.plots.dumbbell import Changes, changes
from mepof.report.plots.heat import level_paths
from mepof.report.views.image_set import ImageSet


@dataclass(frozen=True)
class Map:
    """An image's heatmap as paths, one for each level."""

    image: str
    paths: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class HeatView:
    """All heatmaps; they have the same width and height in cells."""

    heatmaps: Heatmaps
    columns: int
    rows: int
    maps: tuple[Map, ...]
    cases: tuple[HeatmapCase, ...]


@dataclass(frozen=True)
class FunctionsView:
    """The functions in which one image differs from the baseline."""

    image: str
    plot: Changes
    rows: tuple[FunctionShare, ...]
    before: float
    after: float


@dataclass(frozen=True)
class Locations:
    """The section.

    Attributes:
        footprints: by case, one for each image; None where an image did not run the case.
    """

    heat: HeatView | None
    images: tuple[str, ...]
    footprints: tuple[tuple[str, tuple[Footprint | None, ...]], ...]
    functions: tuple[FunctionsView, ...]


def locations_of(report: Report, image_set: ImageSet) -> Locations | None:
    """What the section shows; None where events were not attributed to locations."""
    if report.heatmaps is None:
        return None
    images = tuple(heat.image for heat in report.heatmaps.images)
    by_key = {(f.suite, f.case, f.image): f for f in report.footprints}
    cases = dict.fromkeys((f.suite, f.case) for f in report.footprints)
    return Locations(
        heat=_heat(report.heatmaps),
        images=images,
        footprints=tuple(
            (case, tuple(by_key.get((suite, case, image)) for image in images))
            for suite, case in cases
        ),
        functions=tuple(
            _functions(image.name, rows)
            for image in image_set.sound
            if (rows := tuple(row for row in report.functions if row.image == image.name))
        ),
    )


def _heat(heatmaps: Heatmaps) -> HeatView:
    return HeatView(
        heatmaps=heatmaps,
        columns=sum(case.columns for case in heatmaps.cases),
        rows=len(heatmaps.images[0].levels),
        maps=tuple(Map(heat.image, level_paths(heat.levels)) for heat in heatmaps.images),
        cases=heatmaps.cases,
    )


def _functions(image: str, rows: tuple[FunctionShare, ...]) -> FunctionsView:
    named = [row for row in rows if row.function is not None]
    return FunctionsView(
        image=image,
        plot=changes(
            [(str(r.function), r.baseline_cycles_percent, r.cycles_percent) for r in named]
        ),
        rows=rows,
        before=sum(row.baseline_cycles_percent for row in rows),
        after=sum(row.cycles_percent for row in rows),
    )
