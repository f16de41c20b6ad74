"""The quickstart end to end, on a kernel that is really built and booted."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import mepof.report
from mepof.events import Event
from mepof.executor.local import LocalExecutor
from mepof.executor.protocol import Finished
from mepof.plan.model import Plan

pytestmark = pytest.mark.boot

# Boots repeat exactly: what it gains changes with the compiler and the kernel's release alone.
PROMISED_IMPROVEMENT_PERCENT = 14.0
WORST_CASE_PERCENT = -1.0


def report_of(out: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((out / "report.json").read_text())
    return loaded


def test_the_optimised_image_boots_passes_its_checks_and_is_faster(
    finished: Finished, out: Path
) -> None:
    report = report_of(out)
    images = {image["name"]: image for image in report["images"]}  # type: ignore[attr-defined]
    assert set(images) == {"plain", "opt"}
    assert all(i["booted"] and i["self_check"] == "passed" for i in images.values())
    (row,) = [
        row
        for row in report["summary"]  # type: ignore[attr-defined]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    ]
    assert row["kind"] == "counted"
    assert row["geomean_improvement_percent"] >= PROMISED_IMPROVEMENT_PERCENT


def test_no_case_gets_worse(finished: Finished, out: Path) -> None:
    rows = [
        row
        for row in report_of(out)["cases"]  # type: ignore[attr-defined]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    ]
    assert len(rows) == 8
    assert min(row["improvement_percent"] for row in rows) > WORST_CASE_PERCENT


def test_the_control_does_not_move(finished: Finished, out: Path) -> None:
    rows = [
        row
        for row in report_of(out)["cases"]  # type: ignore[attr-defined]
        if (row["image"], row["metric"]) == ("opt", "user_instructions")
    ]
    assert len(rows) == 8
    assert max(abs(row["improvement_percent"]) for row in rows) < 0.1


def test_the_report_matches_its_schema(finished: Finished, out: Path) -> None:
    schema = Path(mepof.report.__file__).with_name("report.schema.json")
    jsonschema.validate(report_of(out), json.loads(schema.read_text()))


def test_the_results_are_in_the_output_directory(finished: Finished, out: Path) -> None:
    names = {path.name for path in out.iterdir()}
    wanted = {"opt.img", "opt.profdata", "plain.img", "report.json", "report.html", "cases.csv"}
    assert wanted | {"journal.jsonl", "plan.json"} <= names


def test_a_second_run_makes_nothing(
    finished: Finished, executor: LocalExecutor, plan: Plan, tmp_path: Path
) -> None:
    events: list[Event] = []
    again = executor.run(plan, tmp_path / "again", events.append)
    made = [name for name, step in again.run.steps.items() if not step.cached]
    assert made == ["report"]
    for name, step in finished.run.steps.items():
        if name != "report":
            assert again.run.steps[name].digest == step.digest
