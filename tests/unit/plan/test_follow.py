from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mepof.events import StepFinished, StepNote, StepProgress, StepStarted
from mepof.plan.body import StepContext
from mepof.plan.follow import FollowedJournal
from mepof.plan.journal import FILE_NAME, Journal, PlannedStep, in_use, read_runs
from mepof.plan.progress import FILE_NAME as PROGRESS
from mepof.plan.progress import ProgressFile, read_progress

from .test_journal import STEP, begin
from .toy_bodies import DIAMOND, Toy, plan_of, run, toy


def test_what_is_appended_is_seen_at_the_next_look(tmp_path: Path) -> None:
    followed = FollowedJournal(tmp_path / FILE_NAME)
    assert followed.runs() == ()
    journal = begin(tmp_path)
    (before,) = followed.runs()
    journal.write("start", **STEP)
    (after,) = followed.runs()
    assert (before.steps, after.steps["a/b"].state) == ({}, "running")
    assert followed.runs() == read_runs(tmp_path)


def test_a_line_that_is_being_written_is_seen_once_it_is_whole(tmp_path: Path) -> None:
    begin(tmp_path).write("start", **STEP)
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        followed = FollowedJournal(path)
        assert len(followed.runs()) == (b"\n" in whole[:cut])
        with path.open("ab") as file:
            file.write(whole[cut:])
        assert followed.runs() == read_runs(path)


@pytest.mark.parametrize("how", ["truncated", "replaced"])
def test_a_journal_that_begins_again_is_read_again(tmp_path: Path, how: str) -> None:
    begin(tmp_path, "one")
    path = tmp_path / FILE_NAME
    followed = FollowedJournal(path)
    assert [r.program for r in followed.runs()] == ["one"]
    if how == "replaced":
        path.unlink()
    else:
        path.write_bytes(b"")
        followed.runs()
    begin(tmp_path, "two")
    assert [r.program for r in followed.runs()] == ["two"]


@pytest.mark.parametrize("line", [b"[]", b"null", b'{"run": 1}', b"\xff\xfe", b'{"run": [1]}'])
def test_foreign_lines_are_skipped(tmp_path: Path, line: bytes) -> None:
    journal = begin(tmp_path)
    with journal.path.open("ab") as file:
        file.write(line + b"\n")
    assert len(FollowedJournal(journal.path).runs()) == 1


def test_a_journal_is_in_use_until_its_writer_closes_it_or_dies(tmp_path: Path) -> None:
    assert not in_use(tmp_path / FILE_NAME)
    journal = Journal(tmp_path)
    other = Journal(tmp_path)
    assert in_use(journal.path)
    other.close()
    assert in_use(journal.path)
    journal.close()
    assert not in_use(journal.path)


def test_a_run_journals_its_plan_before_the_first_step(tmp_path: Path) -> None:
    seen = []

    def look(context: StepContext) -> None:
        (current,) = read_runs(tmp_path / "out")
        seen.append((current.pid, [p.step for p in current.planned], in_use(journal)))
        raise ValueError

    journal = tmp_path / "out" / FILE_NAME
    with pytest.raises(Exception, match="bug"):
        run(tmp_path, plan_of(toy("a"), toy("b", "a")), Toy(look))
    assert seen == [(os.getpid(), ["a", "b"], True)]
    assert not in_use(journal)
    (failed,) = read_runs(tmp_path / "out")
    assert failed.planned[1] == PlannedStep("b", "toy", ("a",))


def test_progress_is_there_while_a_step_runs_and_gone_afterwards(tmp_path: Path) -> None:
    seen: list[object] = []

    def work(context: StepContext) -> None:
        (context.output / "x").write_text("x")
        context.progress(3, 4, "files")
        progress._written = -1.0  # as if some time had passed
        context.progress(1234, 2468, "files", "in all")
        seen.append(read_progress(tmp_path))

    progress = ProgressFile(tmp_path, lambda: 0.0)
    run(tmp_path, plan_of(toy("a")), Toy(work), sink=progress.take)
    assert seen == [{"a": "1,234 of 2,468 files (50 %) in all"}]
    progress.close()
    assert not (tmp_path / PROGRESS).exists()
    assert not (tmp_path / "out" / PROGRESS).exists()
    assert read_progress(tmp_path) == {}


def test_progress_is_written_a_few_times_a_second(tmp_path: Path) -> None:
    now = 0.0
    progress = ProgressFile(tmp_path, lambda: now, lambda seconds, act: None)
    written = set()
    progress.take(StepStarted("a", "toy", ""))
    for done in range(100):
        now = done / 100
        progress.take(StepProgress("a", done, None, "files"))
        written.add((tmp_path / PROGRESS).read_text())
    assert 4 <= len(written) <= 6
    now = 2.0
    progress.take(StepFinished("a", "toy", "d", 1.0, False))
    progress.take(StepNote("other", "a note on a step that is not running"))
    assert json.loads((tmp_path / PROGRESS).read_text()) == {}


def test_the_last_progress_for_a_long_time_is_written(tmp_path: Path) -> None:
    due: list[tuple[float, Callable[[], None]]] = []
    progress = ProgressFile(tmp_path, lambda: 0.0, lambda seconds, act: due.append((seconds, act)))
    progress.take(StepStarted("a", "toy", ""))
    progress.take(StepProgress("a", 1, None, "files"))
    progress.take(StepProgress("a", 2, None, "files"))
    assert read_progress(tmp_path) == {"a": ""}
    ((seconds, act),) = due
    act()
    assert 0 < seconds <= 0.2 and read_progress(tmp_path) == {"a": "2 files"}
    progress.take(StepProgress("a", 3, None, "files"))
    progress.close()
    due[1][1]()
    assert not (tmp_path / PROGRESS).exists()


def test_a_directory_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    progress = ProgressFile(tmp_path / "missing", lambda: 0.0)
    progress.take(StepStarted("a", "toy", ""))
    progress.close()


@pytest.mark.parametrize("text", ["", "[]", "{", "7"])
def test_a_progress_file_that_is_none_is_no_progress(tmp_path: Path, text: str) -> None:
    (tmp_path / PROGRESS).write_text(text)
    assert read_progress(tmp_path) == {}


def test_a_cached_run_has_the_whole_plan(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    run(tmp_path, DIAMOND, Toy())
    first, second = read_runs(tmp_path / "out")
    assert first.planned == second.planned
    assert set(second.steps) == {p.step for p in second.planned}
