"""Where in the kernels the work is done: places summed up to a size that a report can hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from mepof.pmu.locations import CaseLocations, Locations
from mepof.report.detail import (
    Footprint,
    FunctionShare,
    HeatmapCase,
    Heatmaps,
    ImageHeat,
)
from mepof.suite.cases import CaseId

_FUNCTIONS = 24
_ROWS, _COLUMNS = 160, 160
_LEVELS, _FACTOR = 6, 4
# What the plugin's slices are made of unless it is told otherwise (docs/pmu.md).
_SLICE_INSTRUCTIONS = 1 << 20
# Modules and generated code are gigabytes away from the text, and would leave it one row.
_REACH_BYTES = 64 << 20
_MOST = 0.9

ImageLocations = Mapping[str, Locations]
"""The places of images by their names, the baseline first."""


def functions_of(baseline: Locations, image: str, places: Locations) -> tuple[FunctionShare, ...]:
    """The functions that differ most in modelled cycles, the largest difference first.

    The last row is all others together.
    """
    theirs, ours = _shares(baseline, baseline), _shares(places, baseline)
    none = _Share(0.0, 0.0)
    names = sorted(
        theirs.keys() | ours.keys(),
        key=lambda n: (-abs(ours.get(n, none).cycles - theirs.get(n, none).cycles), n),
    )
    rows = [
        _row(image, name, [(theirs.get(name, none), ours.get(name, none))])
        for name in names[:_FUNCTIONS]
    ]
    others = [(theirs.get(name, none), ours.get(name, none)) for name in names[_FUNCTIONS:]]
    return (*rows, *([_row(image, None, others)] if others else []))


@dataclass(frozen=True)
class _Share:
    """Of what the kernel took in the baseline, in percent."""

    cycles: float
    instructions: float


def _shares(places: Locations, baseline: Locations) -> dict[str, _Share]:
    """The shares of functions, over the cases of both, each weighing the same."""
    wholes = {_id(case): case for case in baseline.cases}
    cases = [(case, wholes[_id(case)]) for case in places.cases if _id(case) in wholes]
    cycles: defaultdict[str, float] = defaultdict(float)
    instructions: defaultdict[str, float] = defaultdict(float)
    for case, whole in cases:
        all_cycles = sum(f.cycles for f in whole.functions)
        all_instructions = sum(f.instructions for f in whole.functions)
        for function in case.functions:
            name = source_name(function.name)
            if all_cycles and all_instructions:
                cycles[name] += 100 * function.cycles / all_cycles / len(cases)
                instructions[name] += 100 * function.instructions / all_instructions / len(cases)
    return {name: _Share(cycles[name], instructions[name]) for name in cycles}


def source_name(symbol: str) -> str:
    """A function's name without what compilers append to parts and copies (``.cold``)."""
    return symbol[:1] + symbol[1:].partition(".")[0]


def _row(image: str, name: str | None, both: Sequence[tuple[_Share, _Share]]) -> FunctionShare:
    return FunctionShare(
        image=image,
        function=name,
        functions=len(both),
        baseline_cycles_percent=sum(a.cycles for a, _ in both),
        cycles_percent=sum(b.cycles for _, b in both),
        baseline_instructions_percent=sum(a.instructions for a, _ in both),
        instructions_percent=sum(b.instructions for _, b in both),
    )


def footprints_of(image: str, places: Locations) -> Iterator[Footprint]:
    """How much text each case executed."""
    for case in places.cases:
        pages = sorted(_pages(case).values(), reverse=True)
        wanted = _MOST * sum(pages)
        # Of the sums from the hottest page on, those that are still too small, and the next one.
        fewest = sum(held < wanted for held in accumulate(pages)) + 1
        yield Footprint(
            image=image,
            suite=case.suite,
            case=case.case,
            pages=len(pages),
            pages_of_90_percent=min(fewest, len(pages)),
        )


def _pages(case: CaseLocations) -> Counter[int]:
    """Instructions by the number of the page."""
    found: Counter[int] = Counter()
    for row in case.heatmap.rows:
        for index, instructions in row:
            found[case.heatmap.pages[index]] += instructions
    return found


def heatmaps_of(images: ImageLocations) -> Heatmaps | None:
    """The heatmaps of all images on the same axes, by the same scale; None if nothing ran."""
    total: Counter[int] = Counter()
    for places in images.values():
        for case in places.cases:
            total += _pages(case)
    if not total:
        return None
    page_bytes = next(c.heatmap.page_bytes for p in images.values() for c in p.cases)
    middle = _median(total)
    reach = _REACH_BYTES // page_bytes
    near = [page for page in total if abs(page - middle) <= reach]
    pages_a_row = 1
    first = min(near)
    while (max(near) - first) // pages_a_row >= _ROWS:
        pages_a_row *= 2
        first = min(near) // pages_a_row * pages_a_row
    rows = (max(near) - first) // pages_a_row + 1
    slices = {
        name: max(len(c.heatmap.rows) for p in images.values() for c in p.cases if _id(c) == name)
        for name in dict.fromkeys(_id(c) for p in images.values() for c in p.cases)
    }
    merged = max(1, ceil(sum(slices.values()) / _COLUMNS))
    cases: list[HeatmapCase] = []
    column = 0
    for (suite, case_name), count in slices.items():
        columns = max(1, ceil(count / merged))
        cases.append(HeatmapCase(suite=suite, case=case_name, first=column, columns=columns))
        column += columns
    cells = {
        name: _cells(places, cases, merged, first, pages_a_row, rows)
        for name, places in images.items()
    }
    most = max(max(grid.values()) for grid in cells.values() if grid)
    level_from = [max(1, most // _FACTOR ** (_LEVELS - level)) for level in range(_LEVELS)]
    return Heatmaps(
        address=first * page_bytes,
        row_bytes=pages_a_row * page_bytes,
        column_instructions=merged * _SLICE_INSTRUCTIONS,
        level_from=tuple(level_from),
        cases=tuple(cases),
        images=tuple(
            ImageHeat(image=name, levels=_levels(grid, rows, column, level_from))
            for name, grid in cells.items()
        ),
        left_out_percent=100 * (1 - sum(total[page] for page in near) / sum(total.values())),
    )


def _median(counts: Mapping[int, int]) -> int:
    """The key below which half of all counts are."""
    half, reached = sum(counts.values()) / 2, 0
    for key in sorted(counts):
        reached += counts[key]
        if reached >= half:
            return key
    raise ValueError("there are no counts")


def _cells(
    places: Locations,
    cases: Sequence[HeatmapCase],
    merged: int,
    first: int,
    pages_a_row: int,
    rows: int,
) -> Counter[tuple[int, int]]:
    """Instructions by row and column."""
    found: Counter[tuple[int, int]] = Counter()
    begins = {(case.suite, case.case): case.first for case in cases}
    for case in places.cases:
        for number, cells in enumerate(case.heatmap.rows):
            column = begins[_id(case)] + number // merged
            for index, instructions in cells:
                row = (case.heatmap.pages[index] - first) // pages_a_row
                if 0 <= row < rows:
                    found[row, column] += instructions
    return found


def _levels(
    cells: Mapping[tuple[int, int], int], rows: int, columns: int, level_from: Sequence[int]
) -> tuple[str, ...]:
    def level(row: int, column: int) -> str:
        count = cells.get((row, column), 0)
        return str(max(1, sum(count >= least for least in level_from)) if count else 0)

    return tuple("".join(level(row, column) for column in range(columns)) for row in range(rows))


def _id(case: CaseLocations) -> CaseId:
    return (case.suite, case.case)
