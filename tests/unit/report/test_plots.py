"""The layout of the drawings."""

from __future__ import annotations

import pytest

from mepof.report.plots.axis import Axis, absolute_percent, plain_percent
from mepof.report.plots.bars import Bar, Group, line_up, panel, stacks
from mepof.report.plots.dumbbell import changes
from mepof.report.plots.forest import Estimate, Track, forest
from mepof.report.plots.heat import level_paths


def test_a_forest_keeps_everything_inside_and_zero_on_the_axis() -> None:
    better = Estimate(0, 11.0, (10.0, 12.0), "faster", outliers=(14.0,))
    worse = Estimate(1, -3.0, (-4.0, -2.0), "slower")
    plot = forest([Track("pipe", [better, worse]), Track("Geometric mean", [better], mean=True)])
    assert [drawn.track.label for drawn in plot.tracks] == ["pipe", "Geometric mean"]
    first, second = plot.tracks[0].marks
    assert 0 < second.low < second.x < second.high < plot.zero < first.low < first.x < first.high
    assert first.high < first.outliers[0] < 100
    assert (first.bar, second.bar) == (plot.zero, second.x)
    assert dict(plot.ticks)[plot.zero] == "0"
    assert all(mark.y < plot.bottom for drawn in plot.tracks for mark in drawn.marks)
    assert (plot.more, plot.less) == ("", "fewer")


def test_a_forest_names_only_the_sides_of_zero_that_are_wide_enough() -> None:
    better = forest([Track("pipe", [Estimate(0, 11.0, (10.0, 12.0), "faster")])])
    worse = forest([Track("pipe", [Estimate(0, -11.0, (-12.0, -10.0), "slower")])], less="less")
    assert (better.more, better.less) == ("", "fewer")
    assert (worse.more, worse.less) == ("more", "")


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.003, 7.0, -250.0, 1e6])
def test_an_axis_of_any_scale_has_few_round_ticks(value: float) -> None:
    ticks = Axis.over([value], 0.0, 100.0).ticks(absolute_percent)
    assert 1 <= len(ticks) <= 7
    assert all(0 <= x <= 100 for x, _ in ticks)


def test_ticks_are_round_and_unsigned() -> None:
    axis = Axis.over([-10.0, 10.0], 0.0, 100.0)
    assert axis.ticks(absolute_percent) == (
        (0.0, "10 %"),
        (25.0, "5 %"),
        (50.0, "0"),
        (75.0, "5 %"),
        (100.0, "10 %"),
    )
    assert [text for _, text in Axis.over([1.0], 0.0, 1.0).ticks(plain_percent)][:2] == [
        "0",
        "0.2 %",
    ]


def test_panels_of_a_suite_share_their_axis() -> None:
    groups = [Group("instructions", [Bar(1, 50.0, "50 %"), Bar(2, 200.0, "200 %")])]
    plot = panel(groups, 200.0, 100.0)
    half, whole = plot.groups[0].bars
    assert half.width * 4 == pytest.approx(whole.width, abs=0.1)
    assert plot.reference == pytest.approx(whole.width / 2, abs=0.1)


def test_a_bar_with_marks_spans_them() -> None:
    plot = panel([Group("latency", [Bar(0, 40.0, "10 ns", (10.0, 20.0, 40.0))])], None, None)
    (bar,) = plot.groups[0].bars
    first, second, third = bar.marks
    assert (first, third) == (bar.x, bar.x + bar.width)
    assert second == pytest.approx(2 * first, abs=0.1)


def test_parts_of_a_stack_touch_each_other_and_add_up() -> None:
    plot = stacks([("all", True, [(0, [60.0, 0.0, 40.0]), (1, [50.0, 0.0, 1.0])])])
    whole, less = plot.tracks[0].stacks
    assert [segment.part for segment in whole.segments] == [0, 2]
    assert whole.segments[1].x == whole.segments[0].x + whole.segments[0].width
    assert (whole.total, less.total) == (100.0, 51.0)
    assert less.end < whole.end
    assert [segment.labelled for segment in less.segments] == [True, False]


def test_a_line_of_parts_fills_the_width() -> None:
    segments = line_up([30.0, 10.0])
    assert [(s.x, s.width) for s in segments] == [(0.0, 75.0), (75.0, 25.0)]
    assert line_up([]) == ()


def test_a_heatmap_is_one_path_for_each_level_with_the_first_row_below() -> None:
    assert level_paths(["0110", "3001"]) == (
        ("1", "M1 1h2v1h-2zM3 0h1v1h-1z"),
        ("3", "M0 0h1v1h-1z"),
    )
    assert level_paths(["00"]) == ()


def test_changes_have_before_and_after() -> None:
    plot = changes([("vfs_read", 10.0, 4.0), ("memcpy", 0.0, 2.0)])
    down, up = plot.lines
    assert down.after < down.before
    assert up.after > up.before
    assert [line.difference for line in plot.lines] == [-6.0, 2.0]
    assert up.y < plot.bottom < plot.height
