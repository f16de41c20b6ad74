"""Locations of the kernels' work, aggregated to a size that fits a report."""

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
# Instructions per slice of the plugin by default (docs/pmu.md).
_SLICE_INSTRUCTIONS = 1 << 20
# Modules and generated code are gigabytes away: with them, the text would shrink to one row.
_REACH_BYTES = 64 << 20
_HOT_SHARE = 0.9

ImageLocations = Mapping[str, Locations]
"""Locations by image name, the baseline first."""


def functions_of(
    baseline: Locations, image: str, locations: Locations
) -> tuple[FunctionShare, ...]:
    """The functions that differ most in modelled cycles, the largest difference first.

    They are shares over the cases that both ran. The last row is the sum of all others.
    """
    ran = {_id(case) for case in locations.cases}
    wholes = {_id(case): case for case in baseline.cases if _id(case) in ran}
    theirs, ours = _shares(baseline, wholes), _shares(locations, wholes)
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
    """A function's percentages of all kernel cycles and instructions in the baseline."""

    cycles: float
    instructions: float


def _shares(locations: Locations, wholes: Mapping[CaseId, CaseLocations]) -> dict[str, _Share]:
    """The shares of functions over some cases, each with the same weight.

    Args:
        wholes: the baseline's of those cases, of which they are shares.
    """
    cases = [(case, wholes[_id(case)]) for case in locations.cases if _id(case) in wholes]
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
    """A function's name without the suffix of a part or copy (``.cold``)."""
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


def footprints_of(image: str, locations: Locations) -> Iterator[Footprint]:
    """The amount of text that each case executed."""
    for case in locations.cases:
        pages = sorted(_pages(case).values(), reverse=True)
        wanted = _HOT_SHARE * sum(pages)
        # Hottest page first: count the running sums that are too small, plus the next one.
        pages_needed = sum(held < wanted for held in accumulate(pages)) + 1
        yield Footprint(
            image=image,
            suite=case.suite,
            case=case.case,
            pages=len(pages),
            pages_of_90_percent=min(pages_needed, len(pages)),
        )


def _pages(case: CaseLocations) -> Counter[int]:
    """Instructions by page number."""
    found: Counter[int] = Counter()
    for row in case.heatmap.rows:
        for index, instructions in row:
            found[case.heatmap.pages[index]] += instructions
    return found


def heatmaps_of(images: ImageLocations) -> Heatmaps | None:
    """The heatmaps of all images on the same axes and scale; None if nothing ran."""
    total: Counter[int] = Counter()
    for locations in images.values():
        for case in locations.cases:
            total += _pages(case)
    if not total:
        return None
    page_bytes = next(c.heatmap.page_bytes for p in images.values() for c in p.cases)
    middle = _median(total)
    reach = _REACH_BYTES // page_bytes
    near = [page for page in total if abs(page - middle) <= reach]
    pages_per_row = 1
    first = min(near)
    while (max(near) - first) // pages_per_row >= _ROWS:
        pages_per_row *= 2
        first = min(near) // pages_per_row * pages_per_row
    rows = (max(near) - first) // pages_per_row + 1
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
        name: _cells(locations, cases, merged, first, pages_per_row, rows)
        for name, locations in images.items()
    }
    largest = max(max(grid.values()) for grid in cells.values() if grid)
    level_from = [max(1, largest // _FACTOR ** (_LEVELS - level)) for level in range(_LEVELS)]
    return Heatmaps(
        address=first * page_bytes,
        row_bytes=pages_per_row * page_bytes,
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
    """The weighted median of the keys."""
    half, reached = sum(counts.values()) / 2, 0
    for key in sorted(counts):
        reached += counts[key]
        if reached >= half:
            return key
    raise ValueError("there are no counts")


def _cells(
    locations: Locations,
    cases: Sequence[HeatmapCase],
    merged: int,
    first: int,
    pages_per_row: int,
    rows: int,
) -> Counter[tuple[int, int]]:
    """Instructions by row and column."""
    found: Counter[tuple[int, int]] = Counter()
    first_columns = {(case.suite, case.case): case.first for case in cases}
    for case in locations.cases:
        for number, cells in enumerate(case.heatmap.rows):
            column = first_columns[_id(case)] + number // merged
            for index, instructions in cells:
                row = (case.heatmap.pages[index] - first) // pages_per_row
                if 0 <= row < rows:
                    found[row, column] += instructions
    return found


def _levels(
    cells: Mapping[tuple[int, int], int], rows: int, columns: int, level_from: Sequence[int]
) -> tuple[str, ...]:
    def level(row: int, column: int) -> str:
        count = cells.get((row, column), 0)
        return str(max(1, sum(count >= bound for bound in level_from)) if count else 0)

    return tuple("".join(level(row, column) for column in range(columns)) for row in range(rows))


def _id(case: CaseLocations) -> CaseId:
    return (case.suite, case.case)
