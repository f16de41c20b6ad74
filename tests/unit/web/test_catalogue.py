from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from plan.test_journal import STEP, begin

from mepof.plan.journal import FILE_NAME, read_runs
from mepof.web.catalogue import Catalogue, Entry
from mepof.web.steps import rows_of


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


def made(out: Path, state: str | None = "done", program: str = "p") -> str:
    out.mkdir(parents=True, exist_ok=True)
    journal = begin(out, program)
    if state is not None:
        journal.write("end", state=state)
    journal.close()
    return read_runs(out)[-1].id


def catalogue_of(root: Path) -> Catalogue:
    return Catalogue(root, Clock())


def states(catalogue: Catalogue) -> list[tuple[str, str]]:
    return [(entry.name, entry.state) for entry in catalogue.entries().values()]


def test_runs_are_found_in_directories_the_last_one_first(tmp_path: Path) -> None:
    made(tmp_path / "one")
    made(tmp_path / "watched" / "runs" / "v6.12", "failed")
    made(tmp_path / "one", "interrupted")
    assert states(catalogue_of(tmp_path)) == [
        ("one", "interrupted"),
        ("watched/runs/v6.12", "failed"),
        ("one", "done"),
    ]


def test_only_the_last_run_of_a_directory_has_its_files(tmp_path: Path) -> None:
    first, last = made(tmp_path / "one"), made(tmp_path / "one")
    catalogue = catalogue_of(tmp_path)
    assert [catalogue.entries()[name].latest for name in (first, last)] == [False, True]


def test_a_run_without_an_end_is_killed_unless_its_journal_is_held(tmp_path: Path) -> None:
    made(tmp_path / "killed", None)
    (tmp_path / "live").mkdir()
    journal = begin(tmp_path / "live")
    catalogue = catalogue_of(tmp_path)
    assert dict(states(catalogue)) == {"killed": "killed", "live": "running"}
    journal.close()
    assert dict(states(catalogue))["live"] == "killed"


def test_new_lines_and_new_runs_are_seen(tmp_path: Path) -> None:
    catalogue = catalogue_of(tmp_path / "later")
    assert catalogue.entries() == {}
    (tmp_path / "later" / "a").mkdir(parents=True)
    journal = begin(tmp_path / "later" / "a")
    (entry,) = catalogue.entries().values()
    assert (entry.made, entry.total) == (0, 0)
    journal.write("finish", **STEP, digest="d", seconds=1.0, log="/l")
    (entry,) = catalogue.entries().values()
    assert (entry.made, entry.total) == (1, 1)
    journal.close()
    shutil.rmtree(tmp_path / "later")
    assert catalogue.entries() == {}


def test_a_run_that_has_just_begun_is_found(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path, lambda: 0.0)
    assert catalogue.entries() == {}
    identifier = made(tmp_path / "a")
    assert catalogue.entries() == {}  # directories are looked for once a second
    assert catalogue.find(identifier) is not None


def test_a_copy_of_a_run_is_one_run(tmp_path: Path) -> None:
    made(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert [name for name, _ in states(catalogue_of(tmp_path))] == ["a"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    made(tmp_path / "elsewhere" / "a")
    served = tmp_path / "served"
    (served / "b").mkdir(parents=True)
    (served / "a").symlink_to(tmp_path / "elsewhere" / "a")
    (served / "b" / FILE_NAME).symlink_to(tmp_path / "elsewhere" / "a" / FILE_NAME)
    assert states(catalogue_of(served)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"run": "../../../etc"},
        {"run": "0123"},
        {"time": "yesterday"},
        {"time": "2026-01-01"},
        {"program": 7},
        {"store": None},
    ],
    ids=lambda change: json.dumps(change),
)
def test_a_journal_of_something_else_is_no_run(tmp_path: Path, change: dict[str, object]) -> None:
    made(tmp_path / "a")
    path = tmp_path / "a" / FILE_NAME
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, **change}) + "\n" for line in lines))
    assert states(catalogue_of(tmp_path)) == []


def only(catalogue: Catalogue) -> Entry:
    (entry,) = catalogue.entries().values()
    return entry


def test_steps_say_what_they_wait_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    journal = begin(tmp_path / "a")
    plan = [("source", []), ("plain", ["source"]), ("opt", ["source"]), ("last", ["plain", "opt"])]
    steps: Any = [{"step": step, "kind": "toy", "inputs": read} for step, read in plan]
    journal.write("plan", steps=steps)
    journal.write("cached", **{**STEP, "step": "source"}, digest="d", seconds=90.0, log="/l")
    journal.write("start", **{**STEP, "step": "plain"}, reason="new")
    catalogue = catalogue_of(tmp_path)
    rows = {r.step: r for r in rows_of(only(catalogue), {"plain": "3 of 4 files (75 %)"})}
    assert (rows["source"].state, rows["source"].took) == ("cached", "1 min 30 s")
    assert (rows["plain"].state, rows["plain"].waits) == ("running", "3 of 4 files (75 %)")
    assert rows["opt"].waits == "waits for cores or a device"
    assert rows["last"].waits == "waits for plain, opt"
    journal.write("fail", **{**STEP, "step": "plain"}, seconds=2.0, message="no disk\nmore")
    journal.write("end", state="failed", message="no disk")
    journal.close()
    rows = {r.step: r for r in rows_of(only(catalogue), {})}
    assert (rows["plain"].state, rows["plain"].waits) == ("failed", "no disk")
    assert (rows["opt"].state, rows["opt"].waits) == ("left", "")


def test_a_step_that_ran_when_its_run_was_killed_is_killed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    journal = begin(tmp_path / "a")
    journal.write("start", **STEP)
    journal.close()
    (row,) = rows_of(only(catalogue_of(tmp_path)), {})
    assert (row.state, row.took) == ("killed", "")
