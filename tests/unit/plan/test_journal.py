from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from mepof.plan.journal import FILE_NAME, Journal, JournalledRun, read_runs

STEP: dict[str, Any] = {"step": "a/b", "kind": "toy", "phase": "build", "fingerprint": "f"}


def begin(out: Path, program: str = "p") -> Journal:
    journal = Journal(out)
    journal.write(
        "run",
        program=program,
        seed=3,
        tools={"clang": "19"},
        versions={"mepof": "1"},
        store="/s",
        cores=2,
    )
    return journal


def only_run(out: Path) -> JournalledRun:
    (run,) = read_runs(out)
    return run


def test_a_run_reads_back_as_written(tmp_path: Path) -> None:
    journal = begin(tmp_path)
    journal.write("start", **STEP, reason="why")
    assert only_run(tmp_path).steps["a/b"].state == "running"
    journal.write("finish", **STEP, digest="d", seconds=2.5, log="/l")
    journal.write("end", state="done")
    run = only_run(tmp_path)
    step = run.steps["a/b"]
    assert (run.program, run.seed, run.state, run.tools) == ("p", 3, "done", {"clang": "19"})
    assert (step.state, step.digest, step.seconds, step.reason) == ("done", "d", 2.5, "why")
    assert step.phase == "build"
    assert step.started is not None and step.ended is not None and step.started <= step.ended


def test_a_torn_last_line_is_skipped_and_does_not_affect_the_next_run(tmp_path: Path) -> None:
    journal = begin(tmp_path, "one")
    journal.write("start", **STEP)
    whole = (tmp_path / FILE_NAME).read_bytes()
    begin_of_line = whole.index(b'{"run"', 1)
    for cut in range(begin_of_line, len(whole)):
        (tmp_path / FILE_NAME).write_bytes(whole[:cut])
        assert [r.program for r in read_runs(tmp_path)] == ["one"]
    (tmp_path / FILE_NAME).write_bytes(whole[:-5])
    begin(tmp_path, "two").write("end", state="done")
    assert [(r.program, r.state) for r in read_runs(tmp_path)] == [
        ("one", "running"),
        ("two", "done"),
    ]


def test_two_runs_in_one_directory_stay_separate(tmp_path: Path) -> None:
    one, two = begin(tmp_path, "one"), begin(tmp_path, "two")
    one.write("start", **STEP)
    two.write("cached", **STEP, digest="d", seconds=1.0)
    one.write("fail", **STEP, message="no", seconds=1.0)
    states = [run.steps["a/b"].state for run in read_runs(tmp_path)]
    assert states == ["failed", "cached"]


@pytest.mark.parametrize("line", [b"null", b"{}", b'"x"', b"\xff\xfe", b'{"run": []}', b"[[[["])
def test_foreign_lines_are_skipped(tmp_path: Path, line: bytes) -> None:
    begin(tmp_path)
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(line + b"\n")
    assert only_run(tmp_path).program == "p"


def test_a_partly_written_line_means_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begin(tmp_path)

    class Short:
        def write(self, data: bytes) -> int:
            with (tmp_path / FILE_NAME).open("ab") as file:
                return file.write(data[:10])

    real = journal._file
    monkeypatch.setattr(journal, "_file", Short())
    with pytest.raises(OSError) as caught:
        journal.write("start", **STEP)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.setattr(journal, "_file", real)
    journal.write("end", state="failed", message="full")
    assert only_run(tmp_path).state == "failed"
