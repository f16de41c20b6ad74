from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mepof.errors import InputError, StoreFull, WorkError
from mepof.measure.comparison import Build, precise, rows_of, totals_of
from mepof.measure.measurement import (
    Evaluation,
    Measurement,
    Modelled,
    ModelledSide,
    Unsupported,
)
from mepof.pmu.events import EVENTS
from mepof.report import Report, build_report, read_report, write_report
from mepof.report.files import NAMES
from mepof.report.html import render
from mepof.report.likeness import Likeness
from mepof.report.schema import schema_text
from mepof.statistics import judge

from .samples import COSTS, GOLDEN, KVM, PROVENANCE, golden_report, measurement, report

PLAIN = measurement("plain")
FIVE = (1.0, 1.001, 0.999, 1.0005, 0.9995)


def close(value: Any) -> Any:
    """The value with its numbers compared up to the last digits, which a libm may change."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9, abs=1e-9)
    if isinstance(value, dict):
        return {k: close(v) for k, v in value.items()}
    if isinstance(value, list):
        return [close(v) for v in value]
    return value


def test_the_report_is_the_golden_one() -> None:
    """Regenerate with ``python tests/unit/report/samples.py``."""
    golden = json.loads((GOLDEN / "report.json").read_text())
    assert json.loads(golden_report().to_json()) == close(golden)


def test_the_published_schema_is_that_of_the_model() -> None:
    import mepof.report as package

    published = Path(package.__file__).with_name("report.schema.json").read_text()
    assert published == schema_text()


@pytest.mark.parametrize(
    "made",
    [
        golden_report(),
        report(PLAIN),
        report(PLAIN, measurement(booted=False, factors=(), self_check="panic")),
        build_report(Evaluation(images=(PLAIN,)), [], None, PROVENANCE),
    ],
    ids=["full", "single", "failed boot", "without profile"],
)
def test_reports_follow_the_published_schema(made: Report) -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(made.to_json()), schema)


def test_the_keys_that_scripts_depend_on_are_there() -> None:
    made = json.loads(golden_report().to_json())
    assert made["schema"] == "mepof-report/1"
    promised = {
        "images": "name digest booted self_check size_bytes",
        "summary": "image metric kind geomean_improvement_percent interval_percent",
        "cases": "image suite case metric kind baseline value unit improvement_percent "
        "interval_percent verdict",
        "phases": "step kind seconds cached",
    }
    for key, names in promised.items():
        for entry in made[key]:
            assert set(names.split()) <= set(entry)
    assert {"text", "image"} <= set(made["images"][0]["size_bytes"])
    assert {"algorithm", "functions", "coverage_percent", "verdict"} <= set(made["profile"])
    assert {"tools", "kernel", "program", "seed"} <= set(made["provenance"])


def test_the_reduction_is_the_improvement_converted() -> None:
    made = golden_report()
    for row in made.cases:
        if row.improvement_percent is None or row.interval_percent is None:
            assert row.reduction_percent is None
            assert row.reduction_interval_percent is None
            continue
        assert row.reduction_percent is not None and row.value is not None
        assert row.reduction_percent == pytest.approx(100 * (1 - row.value / (row.baseline or 0)))
        assert row.reduction_interval_percent == pytest.approx(
            [100 * (1 - 1 / (1 + end / 100)) for end in row.interval_percent]
        )
    for total in (*made.summary, *made.by_training):
        low, high = total.reduction_interval_percent
        assert low <= total.geomean_reduction_percent <= high
        assert total.geomean_reduction_percent == pytest.approx(
            100 * (1 - 1 / (1 + total.geomean_improvement_percent / 100))
        )


def test_main_metrics_that_disagree_are_listed() -> None:
    (found,) = golden_report().disagreements
    assert (found.image, found.suite, found.case) == ("opt", "kbench", "file-8k")
    assert found.better == ("kernel_instructions", "kernel_taken_branches", "guest_time")
    assert found.worse == ("kernel_cycles",)
    stalled = measurement("opt", factors=[0.9] * 5, core="skylake", stalls=dict.fromkeys(COSTS, 2))
    mean, *cases = report(measurement("plain", core="skylake"), stalled).disagreements
    assert (mean.suite, mean.case, mean.worse) == (None, None, ("kernel_cycles",))
    assert {one.case for one in cases} == set(COSTS)
    assert report(PLAIN, measurement(factors=[0.9] * 5)).disagreements == ()


def test_identical_images_do_not_differ_in_any_metric() -> None:
    made = report(PLAIN, measurement("again"))
    assert {s.metric for s in made.summary} == {
        "kernel_instructions",
        "kernel_taken_branches",
        "user_instructions",
        "guest_time",
    }
    for row in made.summary:
        assert row.geomean_improvement_percent == 0
        assert row.interval_percent == (0, 0)
        assert row.verdict == "no difference"
    assert {c.verdict for c in made.cases} == {"no difference"}
    assert made.warnings == ()


def test_ten_percent_fewer_everywhere_shows_in_every_case_and_in_the_mean() -> None:
    made = report(PLAIN, measurement(factors=[0.9] * 5))
    cases = [c for c in made.cases if c.metric == "kernel_instructions"]
    assert len(cases) == 4
    for row in cases:
        assert row.improvement_percent == pytest.approx(100 / 9)
        assert row.baseline is not None
        assert row.value == pytest.approx(0.9 * row.baseline)
        assert row.verdict == "faster"
    total = made.summary[0]
    assert (total.metric, total.cases, total.boots) == ("kernel_instructions", 4, 5)
    assert total.geomean_improvement_percent == pytest.approx(100 / 9)
    assert total.geomean_reduction_percent == pytest.approx(10)
    assert [c.reduction_percent for c in cases] == pytest.approx([10] * 4)


def test_the_baseline_is_compared_with_all_of_its_boots() -> None:
    made = report(
        measurement("plain", factors=(1.0, 1.01, 0.99, 1.0)),
        measurement(factors=[0.9] * 4),
        same_build=measurement("plain", factors=(1.02, 1.01, 1.0, 1.0), seed=1001),
    )
    row = made.cases[0]
    assert (row.boots, row.baseline_boots) == (4, 8)
    assert row.baseline == pytest.approx(300 * 1.00372, rel=1e-4)
    # Four of twelve boots, all below the rest: twice one way in 495.
    assert row.p_value == pytest.approx(2 / 495)


def test_the_control_of_the_same_build_is_compared_for_itself() -> None:
    made = report(PLAIN, measurement(factors=[0.9] * 5), same_build=measurement("plain", seed=1001))
    (control,) = made.controls
    assert (control.kind, control.image, control.boots) == ("same build", "plain", 5)
    assert control.passed
    assert {row.verdict for row in control.summary} == {"no difference"}
    assert {row.verdict for row in control.cases} == {"no difference"}
    assert made.warnings == ()


def test_a_control_that_differs_is_warned_of_and_does_not_pass() -> None:
    drifted = measurement("plain", factors=[1.02] * 5, seed=1001)
    made = report(PLAIN, measurement(factors=[0.9] * 5), same_build=drifted)
    assert not made.controls[0].passed
    (warning,) = (w for w in made.warnings if "differs from itself" in w)
    assert "booted with other seeds" in warning
    assert "kbench/syscall (2.00 % more kernel instructions)" in warning
    assert "the mean (2.00 % more kernel instructions)" in warning


def test_a_control_that_goes_down_makes_the_baseline_unsound() -> None:
    dead = measurement("plain", factors=(), booted=False, self_check="panic")
    made = report(PLAIN, measurement(factors=[0.9] * 5), same_build=dead)
    assert made.summary == ()
    assert any("as a control, is not sound: panic" in w for w in made.warnings)
    why = "the A/A control of plain did not boot"
    assert f"nothing is compared with the baseline plain: {why}" in made.warnings
    assert not any("often enough" in w for w in made.warnings)
    assert f"Nothing was compared: {why}." in render(made)


def test_an_effect_of_layout_alone_is_not_a_verdict() -> None:
    plain, opt = measurement("plain"), measurement(factors=[0.98] * 5)
    assert report(plain, opt).summary[0].verdict == "faster"
    layouts = [
        measurement(f"plain{'+' * n}", factors=[factor] * 5)
        for n, factor in enumerate((0.97, 1.03, 1.0), 1)
    ]
    made = report(plain, opt, relinked=tuple(layouts))
    assert made.summary[0].verdict == "not enough data"
    assert [control.passed for control in made.controls] == [False, False, True]
    assert sum("that is what layout alone does" in w for w in made.warnings) == 2
    # Far beyond what layouts differ by, it still is one.
    made = report(plain, measurement(factors=[0.2] * 5), relinked=tuple(layouts))
    assert made.summary[0].verdict == "faster"


def test_a_relinked_kernel_that_is_unsound_or_unchanged_is_warned_of() -> None:
    dead = measurement("plain22", factors=(), booted=False, self_check="panic")
    made = report(PLAIN, measurement(factors=[0.9] * 5), relinked=(dead, PLAIN))
    assert made.summary[0].verdict == "faster"
    assert any("relinked as a control, is not sound: panic" in w for w in made.warnings)
    assert any("no layout was varied" in w for w in made.warnings)


def test_a_relinked_kernel_that_is_unchanged_is_no_further_build() -> None:
    plain, opt = measurement("plain", factors=FIVE), measurement(factors=FIVE)
    again = measurement("plain", factors=FIVE, seed=1001)
    alone = report(plain, opt, same_build=again)
    made = report(plain, opt, same_build=again, relinked=(plain, plain, plain))
    assert (made.summary, made.cases) == (alone.summary, alone.cases)
    assert made.summary[0].baseline_boots == 10
    assert sum("is the same image: no layout was varied" in w for w in made.warnings) == 3
    assert "its own 5 and 5 of its A/A control)" in render(made)
    other = measurement("plain+", factors=FIVE)
    made = report(plain, opt, same_build=again, relinked=(other, plain, other))
    assert made.summary[0].baseline_boots == 15
    assert sum("is the same image: no layout was varied" in w for w in made.warnings) == 2
    assert "5 of its A/A control and 5 of its relinked build)" in render(made)


def test_outliers_are_shown_and_count() -> None:
    made = report(measurement("plain"), measurement(factors=(1.0, 1.0, 1.0, 1.0, 1.5)))
    row = made.cases[0]
    (found,) = row.outliers
    assert (found.baseline, found.build, found.seed) == (False, 0, 5)
    assert found.deviation_percent == pytest.approx(50)
    assert row.value == pytest.approx(300 * 1.5**0.2)


def test_gains_of_untrained_cases_are_stated_separately() -> None:
    made = report(
        PLAIN,
        measurement(costs={"syscall": 150.0, "pipe-128": 2400.0, "proc": 180e3, "file-8k": 7000.0}),
        measurement("other"),
        likeness={"opt": Likeness(frozenset({("kbench", "syscall")}))},
    )
    by_training = {
        (row.training, row.trained, row.cases): row.geomean_improvement_percent
        for row in made.by_training
        if row.metric == "kernel_instructions"
    }
    assert by_training == {
        ("trained", True, 1): pytest.approx(100),
        ("untrained", False, 3): pytest.approx(0),
    }
    trained = {(c.image, c.case): c.trained for c in made.cases}
    assert trained["opt", "syscall"] is True
    assert trained["opt", "proc"] is False
    assert trained["other", "proc"] is None
    assert {row.image for row in made.by_training} == {"opt"}


def test_a_single_image_is_reported_without_improvement() -> None:
    made = report(PLAIN)
    assert made.baseline is None
    assert made.summary == ()
    first = made.cases[0]
    assert (first.value, first.baseline, first.improvement_percent) == (300.0, None, None)


@pytest.mark.parametrize(
    "failed",
    [
        measurement("broken", factors=(0.5, 0.5, 0.5), self_check="sum 3 is not 4"),
        measurement("broken", factors=(), booted=False, self_check="panic"),
        measurement("broken", factors=(0.5, 0.5), booted=False, self_check="passed"),
    ],
    ids=["self-check", "boot", "some boots"],
)
def test_a_failed_image_is_never_counted_as_improved(failed: object) -> None:
    assert isinstance(failed, type(PLAIN))
    made = report(PLAIN, measurement(factors=[0.9] * 5), failed)
    assert {s.image for s in made.summary} == {"opt"}
    rows = [c for c in made.cases if c.image == "broken"]
    assert rows
    assert all(c.improvement_percent is None and c.interval_percent is None for c in rows)
    assert {c.verdict for c in rows} == {"not enough data"}


def test_nothing_is_compared_with_a_failed_baseline() -> None:
    made = report(measurement("plain", self_check="no"), measurement(factors=[0.9] * 5))
    assert made.summary == ()
    assert all(c.improvement_percent is None for c in made.cases)
    assert any("baseline plain" in w for w in made.warnings)


def test_one_boot_is_not_enough_and_is_warned_of() -> None:
    made = report(measurement("plain", factors=(1.0,)), measurement(factors=(0.9,)))
    assert {s.verdict for s in made.summary} == {"not enough data"}
    assert any("not booted often enough for a verdict" in w for w in made.warnings)


def test_a_control_that_changed_is_warned_of() -> None:
    made = report(PLAIN, measurement(user=41 * 100_000))
    assert any("did not do the same work" in w for w in made.warnings)


def test_cases_that_cost_more_despite_a_better_mean_are_warned_of() -> None:
    def warned(costs: Mapping[str, float], ran: str | None = None) -> list[str]:
        half = {case: cost / 2 for case, cost in COSTS.items()}
        given = Evaluation(images=(PLAIN, measurement(costs={**half, **costs})))
        likeness = None if ran is None else {"opt": Likeness(frozenset({("kbench", ran)}))}
        made = build_report(given, [], None, PROVENANCE, likeness=likeness)
        return [w for w in made.warnings if "takes more" in w]

    assert warned({}) == []
    expected = "opt takes more kernel instructions than plain in kbench/proc (25.00 % more)"
    assert warned({"proc": 225_000.0}) == warned({"proc": 225_000.0}, "proc") == [expected]
    assert warned({"proc": 225_000.0}, "syscall") == [f"{expected}, none of which is trained"]
    # The title says so of the mean.
    assert warned({case: cost * 2 for case, cost in COSTS.items()}) == []


def test_a_case_that_is_missing_in_an_image_stays_in_the_report() -> None:
    made = report(PLAIN, measurement(costs={"syscall": 300.0}))
    missing = [c for c in made.cases if c.case == "proc"]
    assert all(c.value is None and c.verdict == "not enough data" for c in missing)
    assert made.summary[0].cases == 1
    assert any("kbench/proc" in w for w in made.warnings)


def test_cases_that_an_image_cannot_run_are_warned_of() -> None:
    unsupported = (
        Unsupported(suite="ipc", case="binder-4", needs="CONFIG_ANDROID_BINDERFS"),
        Unsupported(suite="ipc", case="binder-124", needs="CONFIG_ANDROID_BINDERFS"),
    )
    whole = measurement()
    boots = tuple(b.model_copy(update={"unsupported": unsupported}) for b in whole.boots)
    made = report(PLAIN, whole.model_copy(update={"boots": boots}))
    assert "opt cannot run ipc/binder-4, ipc/binder-124: CONFIG_ANDROID_BINDERFS is missing" in (
        made.warnings
    )
    assert made.images[1].unsupported == {
        "ipc/binder-4": "CONFIG_ANDROID_BINDERFS",
        "ipc/binder-124": "CONFIG_ANDROID_BINDERFS",
    }
    assert made.images[0].unsupported == {}
    assert "ipc/binder-124" in render(made)


def test_an_image_that_can_run_nothing_has_a_report() -> None:
    unsupported = (Unsupported(suite="binder", case="rpc-1", needs="CONFIG_ANDROID_BINDERFS"),)
    nothing = PLAIN.model_copy(
        update={
            "boots": tuple(
                b.model_copy(update={"cases": (), "unsupported": unsupported}) for b in PLAIN.boots
            )
        }
    )
    made = report(nothing)
    assert made.cases == ()
    assert "binder/rpc-1" in render(made)


def test_a_metric_that_the_device_cannot_count_has_no_rows() -> None:
    made = report(measurement("plain", user=None), measurement(user=None))
    assert "user_instructions" not in {c.metric for c in made.cases}
    assert made.warnings == ()


def test_another_device_is_warned_of() -> None:
    made = report(PLAIN, measurement(device=KVM))
    assert any("same device" in w for w in made.warnings)


def test_images_need_different_names() -> None:
    with pytest.raises(InputError, match="two images are called `plain`"):
        report(PLAIN, PLAIN)
    with pytest.raises(InputError, match="no image"):
        report()


def test_a_report_survives_its_files(tmp_path: Path) -> None:
    write_report(golden_report(), tmp_path / "new" / "out")
    assert read_report(tmp_path / "new" / "out") == golden_report()
    assert sorted(p.name for p in (tmp_path / "new" / "out").iterdir()) == [
        "cases.csv",
        "comparisons.csv",
        "images.csv",
        "means.csv",
        "report.html",
        "report.json",
    ]


def test_a_missing_or_foreign_report_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_report(tmp_path)
    (tmp_path / "report.json").write_text('{"schema": "other/1"}')
    with pytest.raises(InputError, match="is not a report") as raised:
        read_report(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_full_disk_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(report(PLAIN), tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreFull, match="No space left"):
        write_report(golden_report(), tmp_path)
    assert read_report(tmp_path) == report(PLAIN)
    assert {path.name for path in tmp_path.iterdir()} == {*NAMES} - {"boots.csv"}


def test_an_output_that_is_a_file_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WorkError, match="cannot write the report"):
        write_report(report(PLAIN), tmp_path / "out")


def with_core(measured: Measurement, cycles: float, misses: int = 0) -> Measurement:
    """As if a core had been modelled, on which nothing ever misses but in the first boot."""

    def modelled(missed: int) -> Modelled:
        events = {**dict.fromkeys(EVENTS, 0), "btb_misses": missed}
        side = ModelledSide(events=events, cycles={"instructions": cycles})
        return Modelled(core="zen4", kernel=side, user=side)

    boots = tuple(
        boot.model_copy(
            update={
                "cases": tuple(
                    c.model_copy(update={"modelled": modelled(misses if first else misses // 2)})
                    for c in boot.cases
                )
            }
        )
        for boot, first in zip(measured.boots, chain((True,), repeat(False)), strict=False)
    )
    return measured.model_copy(update={"boots": boots})


def test_modelled_cycles_are_compared_and_events_that_never_happen_are_not_missing() -> None:
    made = report(with_core(PLAIN, 1100.0), with_core(measurement("again"), 1000.0))
    (row,) = [s for s in made.summary if s.metric == "kernel_cycles"]
    assert row.kind == "modelled"
    assert row.geomean_improvement_percent == pytest.approx(10)
    assert all(s.metric != "kernel_btb_misses" for s in made.summary)
    missed = [c for c in made.cases if c.metric == "kernel_btb_misses"]
    assert {(c.value, c.improvement_percent) for c in missed} == {(0, None)}
    assert made.warnings == ()
    assert any("of the core zen4" in text for text in made.method)


def test_cases_that_a_mean_of_events_leaves_out_are_warned_of() -> None:
    plain = with_core(PLAIN, 1100.0)
    new = with_core(measurement("new"), 1100.0, 10**6)
    (warning,) = report(plain, new).warnings
    cases = ", ".join(f"kbench/{case}" for case in COSTS)
    left_out = f"the geometric mean of kernel_btb_misses of new leaves out {cases}, "
    assert warning == f"{left_out}in which there were none in a boot"


def test_events_of_a_core_that_vary_need_no_more_boots() -> None:
    made = report(with_core(PLAIN, 1100.0, 10**6), with_core(measurement("again"), 1000.0, 10**6))
    (row,) = [s for s in made.summary if s.metric == "kernel_btb_misses"]
    assert row.verdict == "not enough data"
    assert made.warnings == ()


def test_without_a_core_the_report_does_not_mention_one() -> None:
    made = report(PLAIN, measurement("again"))
    assert not any("core" in text for text in made.method)
    assert all(not c.metric.startswith("kernel_l") for c in made.cases)


def test_every_group_has_a_mean_in_every_metric() -> None:
    costs = {**COSTS, "file-1k": 700.0}
    plain = measurement("plain", factors=FIVE, costs=costs)
    opt = measurement("opt", factors=FIVE, costs={**costs, "file-8k": 0.81 * costs["file-8k"]})
    made = report(plain, opt)
    rows = {r.group: r for r in made.by_group if r.metric == "kernel_instructions"}
    assert list(rows) == ["syscall", "pipe", "proc", "file"]
    # Two cases, of which one costs 19 % less.
    assert rows["file"].cases == 2
    assert rows["file"].geomean_reduction_percent == pytest.approx(10, abs=0.1)
    assert [rows[group].verdict for group in rows] == [*["no difference"] * 3, "faster"]


def test_groups_do_not_change_the_verdicts_of_cases() -> None:
    plain = measurement("plain", factors=FIVE)
    opt = measurement("opt", factors=[0.99 * factor for factor in FIVE])
    made = report(plain, opt)
    rows = rows_of([Build((plain,))], [Build((opt,))])
    compared = [row.comparison for row in rows] + [each.comparison for each in totals_of(rows)]
    alone = [each.adjusted_p for each in judge(compared, made.precision_percent)]
    reported = [row.adjusted_p for row in made.cases] + [row.adjusted_p for row in made.summary]
    assert reported == alone


def test_a_single_difference_is_found_once_booting_ends() -> None:
    costs = {f"file-{number}": 1000.0 * number for number in range(1, 9)}

    def made(name: str, seed: int = 1) -> Measurement:
        return measurement(name, factors=FIVE, costs=costs, seed=seed, core="skylake")

    opt = made("opt")
    boots = []
    for boot in opt.boots:
        first, *rest = boot.cases
        more = first.model_copy(
            update={"kernel_instructions": round(1.01 * (first.kernel_instructions or 0))}
        )
        boots.append(boot.model_copy(update={"cases": (more, *rest)}))
    evaluation = Evaluation(
        images=(made("plain"), opt.model_copy(update={"boots": tuple(boots)})),
        same_build=made("plain", 1001),
    )
    assert precise(evaluation)
    likeness = {"opt": Likeness(frozenset({("kbench", "file-8")}))}
    found = build_report(evaluation, [], None, PROVENANCE, likeness=likeness)
    slower = {(row.metric, row.case) for row in found.cases if row.verdict == "slower"}
    assert slower == {("kernel_instructions", "file-1")}


def test_a_latency_is_the_mean_of_percentiles_and_mean() -> None:
    made = report(
        measurement("plain", factors=FIVE, figures=True),
        measurement("opt", factors=[0.9 * f for f in FIVE], figures=True),
    )
    rows = {(c.case, c.metric): c for c in made.cases}
    latency = rows["syscall", "latency"]
    assert latency.baseline == pytest.approx(300 * (1.01 * 1.5 * 1.99 * 1.6) ** 0.25, rel=1e-2)
    assert latency.reduction_percent == pytest.approx(10, abs=0.5)
    # Only files move bytes: 8,192 in each operation.
    moved = [c for c in made.cases if c.metric == "time_per_byte"]
    assert [c.case for c in moved] == ["file-8k"]
    assert moved[0].baseline == pytest.approx((7000 + 40) / 8192, rel=1e-2)
    (throughput,) = [s for s in made.summary if s.metric == "time_per_byte"]
    assert throughput.geomean_improvement_percent == pytest.approx(11, abs=0.3)
