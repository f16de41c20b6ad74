"""``eval`` and goals: what is measured, and with which exit status a goal is missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.kernel_image import arm64_image, bz_image, gzipped
from writers.shell import (
    Shell,
    assert_refused,
    instant,
    kernel,
    one_document,
    program,
)


def test_eval_with_json_prints_the_report_and_where_it_is(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    for name in ("plain", "opt"):
        (tmp_path / name).write_bytes(bz_image())
    words = ("eval", "plain", "opt", "--metric", "file,pipe", "--metric", "proc;pages", "--json")
    found = one_document(shell(*words))
    written = json.loads((tmp_path / "out/eval/report.json").read_text())
    assert written["schema"] and written["images"]
    assert {key: found[key] for key in written} == written
    assert found["out"] == "out/eval"
    assert found["files"]["report.json"] == "out/eval/report.json"
    plan = json.loads((tmp_path / "out/eval/plan.json").read_text())
    assert f"eval {tmp_path}/plain;{tmp_path}/opt file;pipe;proc;pages." in json.dumps(plan)


def test_a_missed_goal_is_one_line_each_and_status_1_after_everything_is_written(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    monkeypatch.setattr("writers.shell.GOALS_OF", {"opt"})
    (tmp_path / "src").mkdir()
    text = f"recomp {tmp_path}/src {kernel(tmp_path)}.\ngoal worst -1.\neval plain;recomp."
    answer = shell("run", program(tmp_path, text))
    assert answer.status == 1
    lines = [line for line in answer.err.splitlines() if line.startswith("mepof: ")]
    assert [line.split(" %")[0] for line in lines] == [
        "mepof: goal missed: opt, worst -1 kernel_cycles: 12.28",
        "mepof: goal missed: opt, text 2: text 3.33",
    ]
    assert "Traceback" not in answer.err
    assert "goal met: opt, geomean 8 kernel_instructions: " in answer.out
    assert "goal MISSED: opt, text 2: " in answer.out
    for name in ("recomp.img", "plain.img", "report.json", "plan.json"):
        assert (tmp_path / "out/p" / name).is_file()

    again = shell("run", tmp_path / "p.g4", "--json")
    assert again.status == 1
    found = json.loads(again.out)["goals"]
    assert [goal["met"] for goal in found] == [True, True, False, False, True, True]
    assert {goal["report"] for goal in found} == {"out/p"}
    assert found[3]["reason"] == "text 3.33 % larger; the goal is at most 2 % larger"


def test_goals_that_are_met_are_status_0(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "src").mkdir()
    text = f"recomp {tmp_path}/src {kernel(tmp_path)}.\ngoal worst -1.\neval plain;recomp."
    assert one_document(shell("run", program(tmp_path, text), "--json"))["goals"] == []


def test_eval_takes_goals(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instant(monkeypatch)
    for name in ("plain", "opt"):
        (tmp_path / name).write_bytes(bz_image())
    goals = ("--goal", "geomean 8", "--goal", "worst -1 guest_time,kernel_instructions")
    one_document(shell("eval", "plain", "opt", *goals, "--json"))
    plan = json.loads((tmp_path / "out/eval/plan.json").read_text())
    assert "goal geomean 8.\ngoal worst -1 guest_time;kernel_instructions.\n" in plan["program"]
    monkeypatch.setattr("writers.shell.GOALS_OF", {"opt"})
    missed = shell("eval", "plain", "opt", "--goal", "worst 1", "--json")
    assert missed.status == 1
    assert [goal["met"] for goal in json.loads(missed.out)["goals"]] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_eval_takes_pairs_of_cases(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    for name in ("plain", "opt"):
        (tmp_path / name).write_bytes(bz_image())
    pairs = ("--compare", "pipe128 pipe512 ratio instructions,guest_time")
    one_document(shell("eval", "plain", "opt", "--metric", "pipe", *pairs, "--json"))
    plan = json.loads((tmp_path / "out/eval/plan.json").read_text())
    assert "compare pipe128 pipe512 ratio instructions;guest_time.\n" in plan["program"]


@pytest.mark.parametrize(
    ("pair", "what"),
    [
        ("pipe128 pipe512", "invalid compare `pipe128 pipe512`"),
        ("pipe128 pipe512 rato", "did you mean `ratio`?"),
        ("pipe128 unix-4 ratio", "unix-4"),
    ],
)
def test_eval_refuses_wrong_pairs(shell: Shell, tmp_path: Path, pair: str, what: str) -> None:
    for name in ("plain", "opt"):
        (tmp_path / name).write_bytes(bz_image())
    answer = shell("eval", "plain", "opt", "--metric", "pipe", "--compare", pair)
    assert answer.status == 2
    assert what in answer.err


@pytest.mark.parametrize(
    ("goal", "what"),
    [
        ("geomean", "invalid goal `geomean`"),
        ("geomean 8 a b", "invalid goal `geomean 8 a b`"),
        ("geomen 8", "did you mean `geomean`?"),
        ("worst -1;2", "invalid bound `-1;2`"),
        ("text 2", "has no known size"),
    ],
)
def test_eval_refuses_wrong_goals(shell: Shell, tmp_path: Path, goal: str, what: str) -> None:
    for name in ("plain", "opt"):
        (tmp_path / name).write_bytes(bz_image())
    assert_refused(shell("eval", "plain", "opt", "--goal", goal), what)


def test_eval_takes_the_architecture_from_the_image(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instant(monkeypatch)
    (tmp_path / "Image.gz").write_bytes(gzipped(arm64_image()))
    one_document(shell("eval", "Image.gz", "--json"))
    assert "set arch arm64." in (tmp_path / "out/eval/plan.json").read_text()
    (tmp_path / "bzImage").write_bytes(bz_image())
    one_document(shell("eval", "bzImage", "--json"))
    assert "set arch" not in (tmp_path / "out/eval/plan.json").read_text()
