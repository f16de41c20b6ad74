"""What the sections of the page show, and the terminal of them."""

from __future__ import annotations

import re

import pytest

from mepof.report.html import render
from mepof.report.views import cases, core_model
from mepof.report.views.image_set import ImageSet

from .pages import REPORTS, Page, terminal
from .samples import GOALS, golden_report, measurement, report


def test_controls_training_and_outliers_are_shown() -> None:
    page = Page(render(golden_report()))
    assert "the same build, other seeds" in page.text
    assert "A/A: the same build, other seeds" in page.text
    # The table has no verdict of the first on a main metric.
    assert "A/A: ? not enough boots to say" in page.text
    assert "Relinked: ✔ no difference found" in page.text
    assert "of trained cases" in page.text
    assert "of near cases" in page.text
    assert "of untrained cases" in page.text
    assert "near (60.0 %)" in page.text
    assert "plain with seed 5: 2.95 % more" in page.text
    assert any(a.get("class") == "cross" for _, a in page.tags)
    text = terminal(golden_report())
    assert "control, plain relinked: no difference found" in text
    assert "▼ 10.12 % fewer" in text
    assert "▲ " in text


def test_a_control_of_few_boots_says_nothing() -> None:
    few = (1.0, 1.0, 1.0)
    again = measurement("plain", factors=few, seed=1001)
    made = report(measurement("plain", factors=few), measurement(factors=few), same_build=again)
    (control,) = made.controls
    assert control.passed
    page = Page(render(made)).text
    assert "A/A: ? not enough boots to say" in page and "no difference found" not in page
    assert "control, plain booted with other seeds: not enough boots to say" in terminal(made)


def test_goals_are_shown_met_or_missed_with_the_reason() -> None:
    page = Page(render(golden_report())).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "✖ 6 of 18 goals met" in page
    assert "✔ met: opt, goal geomean 8 kernel_instructions: 10.12 % fewer kernel instr" in page
    assert "✖ missed: opt, goal text 2: text 3.33 % larger; the goal is at most 2 % larger" in page
    assert "✖ missed: broken, goal text 2: not measured: broken failed its self-check" in page
    # Before the result, and after the images that failed.
    assert page.index("broken failed") < page.index("goals met") < page.index("Geometric mean")
    group = "goal geomean:file 5 latency: 10."
    assert f"✔ met: opt, {group}" in page
    assert "✔ met: opt, goal memory 1: memory used after boot: 0.70 % more" in page
    text = terminal(golden_report(), width=200)
    assert "goal met: opt, geomean 8 kernel_instructions: 10.12 % fewer kernel instr" in text
    assert "goal MISSED: opt, text 2: text 3.33 % larger; the goal is at most 2 % larger" in text


def test_the_lines_of_a_failure_stay_lines() -> None:
    why = "the service `db` was not ready within 7 s\n  | line 1\n  | line 2"
    html = render(report(measurement("plain"), measurement("broken", self_check=why)))
    assert f"<p>{why}</p>" in html
    assert ".failure p { white-space: pre-wrap;" in html


def test_a_kernel_is_not_blamed_for_an_app_that_failed() -> None:
    why = "the app `Redis` failed: the action `entry` did not write 'OK'"
    made = report(measurement("plain", self_check=why), measurement())
    page = Page(render(made)).text
    assert "✖ plain passed its self-check, but an app failed on it" in page
    assert f"plain: booted, self-check passed, but {why}" in terminal(made, width=200)
    assert "failed its self-check" not in page


def test_goals_that_are_all_met_are_no_failure() -> None:
    made = report(measurement("plain"), measurement(), goals=GOALS[3:4])
    html = render(made)
    assert "✔ 1 of 1 goal met" in Page(html).text
    assert 'class="notice success"' in html
    assert 'class="notice failure"' not in html
    assert "MISSED" not in terminal(made)


def test_groups_are_shown_in_a_plot_and_a_table_of_each_main_metric() -> None:
    made = golden_report()
    html = render(made)
    # Four groups and the mean over all cases.
    plot = html[html.index('aria-labelledby="groups-kernel_instructions-title"') :]
    assert [plot.count(f">{name} <tspan") > 0 for name in ("syscall", "pipe", "proc", "file")]
    assert "Kernel instructions, counted: geometric means by group, against plain" in html
    text = terminal(made)
    for group in ("syscall", "pipe", "proc", "file"):
        assert f"mean of {group}" in text
    one = report(
        *(measurement(name, costs={"proc": 9.0}, factors=(1.0, 1.0)) for name in ("plain", "opt"))
    )
    # The mean over one group is that over all cases.
    assert 'id="groups"' not in render(one)
    assert "mean of" not in terminal(one)


def test_images_without_a_common_case_have_a_page_of_the_modelled_core() -> None:
    made = report(
        measurement("plain", costs={"proc": 9.0}, core="skylake"),
        measurement("opt", costs={"syscall": 9.0}, core="skylake"),
    )
    view = core_model.core_view(made, ImageSet.of(made))
    assert view is not None
    assert (view.plot, view.composition, view.events) == (None, (), ())
    text = Page(render(made)).text
    assert "No case ran on all of these images" in text
    assert "kbench/proc: modelled, per operation" in text


def test_images_of_one_layout_each_differ_by_more_than_layouts_do() -> None:
    images = [measurement("plain"), *(measurement(f"at {f}", factors=[f] * 5) for f in (0.9, 0.88))]
    alone = report(*images).between[0]
    assert (alone.verdict, alone.interval_percent[0]) == ("faster", alone.interval_percent[1])
    layouts = [
        measurement(f"plain{'+' * n}", factors=[factor] * 5)
        for n, factor in enumerate((0.97, 1.03, 1.0), 1)
    ]
    made = report(*images, relinked=tuple(layouts)).between[0]
    assert made.geomean_improvement_percent == alone.geomean_improvement_percent
    assert made.verdict == "not enough data"
    low, high = made.interval_percent
    assert low < 0 and high > 4
    far = report(*images, measurement("far", factors=[0.2] * 5), relinked=tuple(layouts))
    assert {row.verdict for row in far.between[4:] if row.metric == made.metric} == {"faster"}


def test_images_are_compared_with_every_other_one() -> None:
    """So each can be held against the plain kernel of its own compiler."""
    factors = {"plain": 1.0, "opt": 0.8, "other": 1.25, "other-opt": 1.0}
    made = report(
        *(measurement(name, factors=(factor, factor)) for name, factor in factors.items()),
        measurement("broken", self_check="pipe-128: sum 3 is not 4"),
    )
    rows = {
        (row.image, row.against): round(row.geomean_reduction_percent, 2)
        for row in made.between
        if row.metric == "kernel_instructions"
    }
    assert rows == {
        ("other", "opt"): -56.25,
        ("other-opt", "opt"): -25.0,
        ("other-opt", "other"): 20.0,
    }
    page = Page(render(made)).text
    assert "Kernel instructions, counted: every image against every other" in page
    table = page[page.index("every image against every other") :]
    # Those of `other`, against plain, opt and other-opt, and so the way round that has no row.
    cells = ("25.00 % more", "56.25 % more", "\N{EN DASH}", "25.00 % more")
    pattern = r"\s+".join(("other", *(rf"\S? ?{cell}" for cell in cells)))
    assert re.search(pattern, table), table[:900]


def test_one_image_is_compared_with_the_baseline_alone() -> None:
    made = report(measurement("plain"), measurement("opt"))
    assert made.between == ()
    assert 'id="between"' not in render(made)


def test_memory_is_shown_beside_the_sizes() -> None:
    page = Page(render(golden_report())).text
    assert "Memory of the kernel before anything ran" in page
    assert "Memory of the kernel when the last case had ended" in page
    assert "40.63 MiB of memory after boot" in terminal(golden_report(), width=200)
    bare = report(measurement("plain"), measurement("opt"))
    assert "Memory of the kernel" not in Page(render(bare)).text
    assert "memory after boot" not in terminal(bare)


def test_a_section_without_data_is_left_out() -> None:
    sections = {"goals", "groups", "core", "kernel", "training", "controls", "suites"}
    full = {a["id"] for _, a in Page(render(golden_report())).tags if "id" in a}
    assert sections <= full
    bare = report(measurement("plain")).model_copy(update={"profile": None, "phases": ()})
    page = Page(render(bare))
    assert not (sections | {"time"}) & {a["id"] for _, a in page.tags if "id" in a}


def test_the_modelled_core_is_said_to_be_modelled() -> None:
    text = Page(render(golden_report())).text
    assert "What happens in the core modelled" in text
    assert "a model of Intel Skylake" in text
    assert "Where the difference comes from modelled" in text
    assert "What happens in the core" not in Page(render(REPORTS["equal"])).text


def test_the_parts_of_the_cycles_make_them_up() -> None:
    made = golden_report()
    view = core_model.core_view(made, ImageSet.of(made))
    assert view is not None
    *parts, whole = view.composition
    assert whole.values[0] == pytest.approx(100)
    assert sum(part.values[0] or 0 for part in parts) == pytest.approx(100)
    assert whole.values[1] is not None and 50 < whole.values[1] < 100


def test_training_and_profiles_are_shown() -> None:
    text = Page(render(golden_report())).text
    assert "Trained with the scenario rand on kbench, on Linux 6.12.48, seed 7" in text
    assert "Never run: pipe-128, file-8k." in text
    assert "✖ poor: 310 functions ran, fewer than 1,000" in text


def test_cases_that_cannot_run_are_listed() -> None:
    text = Page(render(golden_report())).text
    assert "Cases of the suite kbench that could not run" in text
    assert "CONFIG_ANDROID_BINDERFS" in text


def test_events_of_too_many_cases_are_left_to_the_other_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = Page(render(golden_report())).text
    assert "too many for a page" not in full
    assert "Kernel L1I misses, modelled" in full
    monkeypatch.setattr(cases, "_MAX_ROWS", 1)
    monkeypatch.setattr(core_model, "_MAX_VALUES", 1)
    text = Page(render(golden_report())).text
    assert text.count("too many for a page") == 2
    assert "Kernel L1I misses, modelled" not in text
    assert "Kernel cycles, modelled" in text


def test_the_head_names_the_cases_in_which_main_metrics_disagree() -> None:
    disagreement = (
        "opt, kbench/file-8k: 10.12 % fewer kernel instructions, 19.22 % fewer kernel taken "
        "branches and 10.06 % less guest time (modelled), but 12.28 % more kernel cycles "
        "(modelled)"
    )
    text = Page(render(golden_report())).text.replace("\N{NO-BREAK SPACE}", " ")
    before_the_result = text.split("Result")[1]
    assert "Where the main metrics disagree" in before_the_result
    assert disagreement in before_the_result
    shown = terminal(golden_report(), width=200)
    assert f"main metrics disagree: {disagreement}" in shown
    assert "disagree" not in Page(render(REPORTS["equal"])).text
    assert "disagree" not in terminal(REPORTS["equal"])


def test_many_disagreements_are_left_to_report_json() -> None:
    made = golden_report()
    many = made.model_copy(update={"disagreements": made.disagreements * 10})
    text = Page(render(many)).text
    assert "2 more are under disagreements in report.json" in text
    assert "main metrics disagree in 2 more, see report.html" in terminal(many)


def test_the_critical_path_is_shown_with_what_would_shorten_it() -> None:
    page = Page(render(golden_report())).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "decided when the run ended: opt/collect, opt/convert, opt/build." in page
    assert "Its steps took 6 min 37 s, the longest of them, opt/build, 4 min 58 s" in page
    assert "For 5 min 03 s they waited for cores or a device" in page
    cached = golden_report().model_copy(update={"phases": golden_report().phases[:1]})
    assert "critical path" not in Page(render(cached)).text
