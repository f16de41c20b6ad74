"""Locations, summed up to what a report can hold."""

from __future__ import annotations

import pytest

from mepof.pmu.locations import CaseLocations, Heatmap, Locations
from mepof.report.locations import (
    footprints_of,
    functions_of,
    heatmaps_of,
    source_name,
)

from .samples import LOCATIONS, locations

TEXT = 0xFFFFFFFF81000


def mapped(
    pages: tuple[int, ...], *rows: tuple[tuple[int, int], ...], case: str = "a"
) -> Locations:
    heatmap = Heatmap(page_bytes=4096, pages=pages, rows=rows)
    return Locations(
        core="zen4", cases=(CaseLocations(suite="s", case=case, functions=(), heatmap=heatmap),)
    )


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("schedule", "schedule"),
        ("schedule.cold", "schedule"),
        ("do_one.llvm.1234", "do_one"),
        (".Lentry", ".Lentry"),
        ("[unknown]", "[unknown]"),
    ],
)
def test_parts_and_copies_have_their_function_s_name(symbol: str, name: str) -> None:
    assert source_name(symbol) == name


def test_functions_are_matched_by_name_and_are_shares_of_the_baseline() -> None:
    rows = functions_of(LOCATIONS["plain"], "opt", LOCATIONS["opt"])
    assert [r.function for r in rows] == ["fdget", "vfs_read", "schedule", "memcpy"]
    assert [r.baseline_cycles_percent for r in rows] == pytest.approx([20, 30, 10, 40])
    assert [r.cycles_percent for r in rows] == pytest.approx([0, 42, 4, 36])
    assert sum(r.baseline_cycles_percent for r in rows) == pytest.approx(100)
    assert sum(r.instructions_percent for r in rows) == pytest.approx(82)


def test_functions_beyond_the_largest_differences_are_one_row() -> None:
    many = {f"f{number:02}": float(number) for number in range(30)}
    half = {name: cycles / 2 for name, cycles in many.items()}
    rows = functions_of(locations(many, [TEXT]), "opt", locations(half, [TEXT]))
    assert len(rows) == 25
    assert rows[0].function == "f29"
    assert (rows[-1].function, rows[-1].functions) == (None, 6)
    assert sum(r.cycles_percent for r in rows) == pytest.approx(50)


def test_cases_weigh_the_same_whatever_they_cost() -> None:
    small, large = locations({"a": 1.0}, [TEXT]), locations({"b": 1000.0}, [TEXT])
    mixed = small.model_copy(update={"cases": (small.cases[0], large.cases[1])})
    rows = {r.function: r for r in functions_of(mixed, "same", mixed)}
    assert rows["a"].baseline_cycles_percent == rows["b"].baseline_cycles_percent == 50


def test_only_cases_that_both_ran_are_compared() -> None:
    both, alone = locations({"a": 1.0}, [TEXT]), locations({"b": 1.0}, [TEXT])
    baseline = both.model_copy(update={"cases": (both.cases[0], alone.cases[1])})
    image = both.model_copy(update={"cases": both.cases[:1]})
    (row,) = functions_of(baseline, "image", image)
    assert (row.function, row.baseline_cycles_percent, row.cycles_percent) == ("a", 100, 100)


def test_footprints_count_pages_and_those_that_hold_nine_tenths() -> None:
    found = mapped((TEXT, TEXT + 1, TEXT + 2), ((0, 60), (1, 5)), ((2, 35),))
    (row,) = footprints_of("x", found)
    assert (row.pages, row.pages_of_90_percent) == (3, 2)


def test_heatmaps_have_the_same_axes_and_the_same_scale() -> None:
    heat = heatmaps_of(
        {
            "plain": mapped((TEXT, TEXT + 2), ((0, 4096), (1, 1)), ((1, 1024),)),
            "opt": mapped((TEXT + 1,), ((0, 64),)),
        }
    )
    assert heat is not None
    assert heat.address == TEXT * 4096
    assert heat.level_from == (1, 4, 16, 64, 256, 1024)
    assert [case.columns for case in heat.cases] == [2]
    assert [image.levels for image in heat.images] == [("60", "00", "16"), ("00", "40", "00")]
    assert heat.left_out_percent == 0


def test_a_large_heatmap_is_merged_and_modules_are_left_out() -> None:
    pages = (*range(TEXT, TEXT + 1000), TEXT + (1 << 20))
    rows = [tuple((n, 3) for n in range(1001))] * 1000
    heat = heatmaps_of({"plain": mapped(pages, *rows)})
    assert heat is not None
    (image,) = heat.images
    assert len(image.levels) <= 160
    assert {len(row) for row in image.levels} == {143}  # 1,000 slices, seven in a column
    assert heat.row_bytes == 8 * 4096
    assert heat.column_instructions == 7 << 20
    assert heat.left_out_percent == pytest.approx(100 / 1001)


def test_no_heatmap_is_drawn_if_nothing_was_executed() -> None:
    assert heatmaps_of({}) is None
    assert heatmaps_of({"plain": mapped((), ())}) is None
