from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mepof.errors import InputError, StoreFull, WorkError
from mepof.evaluate.core import PAID_AS
from mepof.evaluate.measurement import Measurement, Modelled, ModelledSide
from mepof.evaluate.report import Report, build_report, read_report, write_report
from mepof.evaluate.report.schema import schema_text

from .samples import GOLDEN, KVM, PROVENANCE, golden_report, measurement, report

PLAIN = measurement("plain")


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
    """Regenerate with ``python tests/unit/evaluate/samples.py``."""
    golden = json.loads((GOLDEN / "report.json").read_text())
    assert json.loads(golden_report().to_json()) == close(golden)


def test_the_published_schema_is_that_of_the_model() -> None:
    import mepof.evaluate.report as package

    published = Path(package.__file__).with_name("report.schema.json").read_text()
    assert published == schema_text()


@pytest.mark.parametrize(
    "made",
    [
        golden_report(),
        report(PLAIN),
        report(PLAIN, measurement(booted=False, factors=(), self_check="panic")),
        build_report([PLAIN], [], None, PROVENANCE),
    ],
    ids=["full", "single", "failed boot", "without profile"],
)
def test_reports_follow_the_published_schema(made: Report) -> None:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(made.to_json()), schema)


def test_the_keys_that_scripts_count_on_are_there() -> None:
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


def test_a_uniform_tenth_less_shows_in_every_case_and_in_the_mean() -> None:
    made = report(PLAIN, measurement(factors=(0.9, 0.9, 0.9)))
    cases = [c for c in made.cases if c.metric == "kernel_instructions"]
    assert len(cases) == 4
    for row in cases:
        assert row.improvement_percent == pytest.approx(100 / 9)
        assert row.baseline is not None
        assert row.value == pytest.approx(0.9 * row.baseline)
        assert row.verdict == "faster"
    total = made.summary[0]
    assert (total.metric, total.cases, total.boots) == ("kernel_instructions", 4, 3)
    assert total.geomean_improvement_percent == pytest.approx(100 / 9)


def test_boots_pair_by_seed_so_that_what_both_share_cancels() -> None:
    noisy = (1.0, 1.5, 0.7)
    made = report(
        measurement("plain", factors=noisy), measurement(factors=[0.9 * f for f in noisy])
    )
    low, high = made.summary[0].interval_percent
    assert high - low < 0.01


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
    made = report(PLAIN, measurement(factors=(0.9, 0.9, 0.9)), failed)
    assert {s.image for s in made.summary} == {"opt"}
    rows = [c for c in made.cases if c.image == "broken"]
    assert rows
    assert all(c.improvement_percent is None and c.interval_percent is None for c in rows)
    assert {c.verdict for c in rows} == {"not enough data"}


def test_nothing_is_compared_with_a_failed_baseline() -> None:
    made = report(measurement("plain", self_check="no"), measurement(factors=(0.9, 0.9, 0.9)))
    assert made.summary == ()
    assert all(c.improvement_percent is None for c in made.cases)
    assert any("baseline plain" in w for w in made.warnings)


def test_one_boot_is_not_enough_and_is_told() -> None:
    made = report(measurement("plain", factors=(1.0,)), measurement(factors=(0.9,)))
    assert {s.verdict for s in made.summary} == {"not enough data"}
    assert any("not enough for an interval" in w for w in made.warnings)


def test_a_control_that_moved_is_told() -> None:
    made = report(PLAIN, measurement(user=41 * 100_000))
    assert any("did not do the same work" in w for w in made.warnings)


def test_a_case_that_an_image_lacks_stays_in_sight() -> None:
    made = report(PLAIN, measurement(costs={"syscall": 300.0}))
    missing = [c for c in made.cases if c.case == "proc"]
    assert all(c.value is None and c.verdict == "not enough data" for c in missing)
    assert made.summary[0].cases == 1
    assert any("kbench/proc" in w for w in made.warnings)


def test_what_a_device_cannot_count_has_no_rows() -> None:
    made = report(measurement("plain", user=None), measurement(user=None))
    assert "user_instructions" not in {c.metric for c in made.cases}
    assert made.warnings == ()


def test_another_device_is_told() -> None:
    made = report(PLAIN, measurement(device=KVM))
    assert any("same device" in w for w in made.warnings)


def test_images_need_names_of_their_own() -> None:
    with pytest.raises(InputError, match="two images are called `plain`"):
        report(PLAIN, PLAIN)
    with pytest.raises(InputError, match="no image"):
        report()


def test_a_report_survives_its_files(tmp_path: Path) -> None:
    write_report(golden_report(), tmp_path / "new" / "out")
    assert read_report(tmp_path / "new" / "out") == golden_report()
    assert sorted(p.name for p in (tmp_path / "new" / "out").iterdir()) == [
        "report.html",
        "report.json",
    ]


def test_a_missing_or_foreign_report_is_one_line(tmp_path: Path) -> None:
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
    assert len(list(tmp_path.iterdir())) == 2


def test_an_output_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(WorkError, match="cannot write the report"):
        write_report(report(PLAIN), tmp_path / "out")


def with_core(measured: Measurement, cycles: float) -> Measurement:
    """As if a core had been modelled, on which nothing ever misses."""
    side = ModelledSide(events=dict.fromkeys(PAID_AS, 0), cycles={"instructions": cycles})
    modelled = Modelled(core="zen4", kernel=side, user=side)
    boots = tuple(
        boot.model_copy(
            update={"cases": tuple(c.model_copy(update={"modelled": modelled}) for c in boot.cases)}
        )
        for boot in measured.boots
    )
    return measured.model_copy(update={"boots": boots})


def test_modelled_cycles_are_compared_and_events_that_never_happen_are_no_lack() -> None:
    made = report(with_core(PLAIN, 1100.0), with_core(measurement("again"), 1000.0))
    (row,) = [s for s in made.summary if s.metric == "kernel_cycles"]
    assert row.kind == "modelled"
    assert row.geomean_improvement_percent == pytest.approx(10)
    assert all(s.metric != "kernel_btb_misses" for s in made.summary)
    missed = [c for c in made.cases if c.metric == "kernel_btb_misses"]
    assert {(c.value, c.improvement_percent) for c in missed} == {(0, None)}
    assert made.warnings == ()
    assert any("of the core zen4" in text for text in made.method)


def test_without_a_core_nothing_speaks_of_one() -> None:
    made = report(PLAIN, measurement("again"))
    assert not any("core" in text for text in made.method)
    assert all(not c.metric.startswith("kernel_l") for c in made.cases)
