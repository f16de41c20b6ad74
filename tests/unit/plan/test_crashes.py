"""Recovery from a kill, an interrupt, a full disk and a second process."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mepof.errors import Interrupted, StoreFull, WorkError
from mepof.events import Event, StepFailed, StepNote
from mepof.plan.body import StepContext
from mepof.plan.journal import Journal, read_runs
from mepof.plan.store import Store

from .toy_bodies import DIAMOND, Toy, marking, plan_of, run, toy, use_work, write_all

LIMIT_SECONDS = 20
TOY = [sys.executable, str(Path(__file__).with_name("toy_bodies.py"))]
SOURCE = Path(__file__).parents[3] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def toy_process(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TOY, *map(str, arguments)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )


def digests(root: Path) -> dict[str, str]:
    return {n: s.digest for n, s in run(root, DIAMOND, Toy(use_work)).steps.items()}


# The first line of the journal, then for each of four steps: its start, its file, its tree,
# objects/, its action, actions/, its finish; and the last line.
SYNCS = 1 + 4 * 7 + 1


@pytest.mark.parametrize("moment", [*range(1, 10), 14, 19, 24, SYNCS - 2, SYNCS - 1, SYNCS])
def test_a_run_killed_at_any_point_resumes_to_the_same_digests(tmp_path: Path, moment: int) -> None:
    killed = toy_process("diamond", tmp_path / "killed", str(moment))
    assert killed.wait(LIMIT_SECONDS) == -signal.SIGKILL
    assert digests(tmp_path / "killed") == digests(tmp_path / "undisturbed")
    # The leftovers of the dead process are gone; our own session may exist.
    assert not any(
        p.name.startswith(f"{killed.pid}-")
        for p in (tmp_path / "killed" / "store" / "tmp").iterdir()
    )
    if moment > 1:
        first, second = read_runs(tmp_path / "killed" / "out")[:2]
        # The last line is written before it is synced.
        assert first.state == ("done" if moment == SYNCS else "running")
        assert second.state == "done"


def test_the_scratch_of_an_interrupted_step_is_there_when_it_runs_again(tmp_path: Path) -> None:
    attempts: list[int] = []

    def cut_off(context: StepContext) -> None:
        with (context.work / "attempts").open("a") as file:
            file.write("attempt\n")
        attempts.append(len((context.work / "attempts").read_text().splitlines()))
        if len(attempts) == 1:
            raise WorkError("cut off")
        write_all(context)

    plan = plan_of(toy("one"))
    with pytest.raises(WorkError):
        run(tmp_path, plan, Toy(cut_off))
    run(tmp_path, plan, Toy(cut_off))
    run(tmp_path, plan, Toy(cut_off), again=True)
    assert attempts == [1, 2, 1]


def test_the_children_of_a_killed_run_are_killed_before_their_scratch_is_used(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "pid"
    assert toy_process("orphan", tmp_path, pid_file).wait(LIMIT_SECONDS) == -signal.SIGKILL
    child = Path("/proc") / pid_file.read_text().strip()
    assert is_running(child)
    seen: list[bool] = []

    def look(context: StepContext) -> None:
        seen.append(is_running(child))
        write_all(context)

    run(tmp_path, plan_of(toy("one")), Toy(look))
    assert seen == [False]


def is_running(process: Path) -> bool:
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_children_and_the_run(tmp_path: Path, number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    pids: list[str] = []

    def up(line: str) -> None:
        pids.append(line)
        os.kill(os.getpid(), number)

    def do(context: StepContext) -> None:
        if context.step.id == "left":
            context.run(["sh", "-c", "echo $$; exec sleep 1000"], on_line=up)
        write_all(context)

    events: list[Event] = []
    with pytest.raises(Interrupted, match="run the same command again to continue"):
        run(tmp_path, DIAMOND, Toy(do), sink=events.append)
    ends = {e.step: e.interrupted for e in events if isinstance(e, StepFailed)}
    assert ends.pop("left")
    assert all(ends.values())
    assert signal.getsignal(number) is handler
    assert not is_running(Path("/proc") / pids[0])
    (journalled,) = read_runs(tmp_path / "out")
    assert journalled.state == "interrupted"
    assert journalled.steps["first"].state == "done"
    assert journalled.steps["left"].state == "failed"
    assert "last" not in journalled.steps
    body = Toy()
    run(tmp_path, DIAMOND, body)
    assert "first" not in body.ran


def test_two_processes_make_one_step_once(tmp_path: Path) -> None:
    """The other process must wait for this one, which stays in the body until it does."""
    marks = tmp_path / "marks"
    others: list[subprocess.Popen[str]] = []
    lines: list[str] = []

    def do(context: StepContext) -> None:
        other = toy_process("shared", tmp_path, marks)
        others.append(other)
        assert other.stdout is not None
        for line in other.stdout:
            lines.append(line)
            if "waiting" in line:
                break
        marking(marks)(context)

    run(tmp_path, plan_of(toy("one")), Toy(do))
    rest, _ = others[0].communicate(timeout=LIMIT_SECONDS)
    assert others[0].returncode == 0
    assert marks.read_text() == "executed\n"
    assert "StepNote" in lines[-1] and "another run is making the same" in lines[-1]
    assert "cached=True" in rest


def test_a_device_is_not_shared_between_two_runs(tmp_path: Path) -> None:
    noted = threading.Event()
    inside = threading.Event()
    order: list[str] = []

    def first(context: StepContext) -> None:
        inside.set()
        assert noted.wait(LIMIT_SECONDS)
        order.append("first")
        write_all(context)

    def second(context: StepContext) -> None:
        order.append("second")
        write_all(context)

    def sink(event: Event) -> None:
        if isinstance(event, StepNote):
            noted.set()

    plan = plan_of(toy("one", n=1))
    other = threading.Thread(target=run, args=(tmp_path, plan, Toy(first, device="phone")))
    other.start()
    assert inside.wait(LIMIT_SECONDS)
    run(tmp_path, plan_of(toy("two", n=2)), Toy(second, device="phone"), sink=sink)
    other.join(LIMIT_SECONDS)
    assert order == ["first", "second"]


def fill(context: StepContext) -> None:
    if context.step.id == "left":
        with (context.output / "big").open("wb") as file:
            for _ in range(64):
                file.write(bytes(1 << 16))
    write_all(context)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    path = tmp_path / "tiny"
    path.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    if mount is None or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("this needs the right to mount a file system")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk_is_named_and_loses_nothing(tiny_disk: Path) -> None:
    with pytest.raises(StoreFull) as caught:
        run(tiny_disk, DIAMOND, Toy(fill), cores=1)
    assert f"the file system at {tiny_disk} has 0.0 MiB free" in caught.value.message
    assert caught.value.remedy is not None and "\n" not in str(caught.value)
    body = Toy()
    run(tiny_disk, DIAMOND, body)
    assert "left" in body.ran and "first" not in body.ran


def test_a_program_that_fills_the_disk_is_distinguished_from_one_that_fails(
    tiny_disk: Path,
) -> None:
    def copy(context: StepContext) -> None:
        context.run(["dd", "if=/dev/zero", f"of={context.output}/big", "bs=64k", "count=64"])

    with pytest.raises(StoreFull, match=str(tiny_disk)):
        run(tiny_disk, plan_of(toy("one")), Toy(copy))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["body", "cause", "record", "journal", "log"])
def test_a_full_disk_anywhere_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, where: str
) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    def wrapped(context: StepContext) -> None:
        try:
            full()
        except OSError as error:
            raise WorkError("could not write") from error

    body = Toy()
    with monkeypatch.context() as patch:
        match where:
            case "body":
                body.do = full
            case "cause":
                body.do = wrapped
            case "record":
                patch.setattr(Store, "record", full)
            case "journal":
                patch.setattr("os.fsync", full)
            case _:
                patch.setattr("mepof.plan.execute.write_recipe", full)
        with pytest.raises(StoreFull, match=r"no space left for .* MiB free"):
            run(tmp_path, DIAMOND, body)
    assert digests(tmp_path) == digests(tmp_path / "undisturbed")


def test_no_step_keeps_running_when_the_journal_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    ended: list[bool] = []

    def do(context: StepContext) -> None:
        both.wait(LIMIT_SECONDS)
        if context.step.id == "long":
            ended.append(context.cancel.wait(LIMIT_SECONDS))
            raise Interrupted("interrupted")
        write_all(context)

    write = Journal.write

    def full_at_finish(journal: Journal, event: str, **fields: Any) -> None:
        if event == "finish":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(journal, event, **fields)

    monkeypatch.setattr(Journal, "write", full_at_finish)
    with pytest.raises(StoreFull):
        run(tmp_path, plan_of(toy("long", n=1), toy("short", n=2)), Toy(do))
    assert ended == [True]


def test_the_reproducer_runs_the_failed_step_alone(tmp_path: Path) -> None:
    def fail(context: StepContext) -> None:
        if context.step.id == "left":
            context.run(["true", "it's", "$HOME"], cwd=tmp_path, env={"A": "b c"})
            raise WorkError("no")
        write_all(context)

    with pytest.raises(WorkError) as caught:
        run(tmp_path, DIAMOND, Toy(fail))
    (script,) = (tmp_path / "store" / "logs").glob("left-*.sh")
    assert str(script) in str(caught.value)
    command = script.read_text().splitlines()[-1]
    assert command == f"(cd {tmp_path} && env 'A=b c' true 'it'\"'\"'s' '$HOME')"
    subprocess.run(["sh", "-c", command], check=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mepof").write_text(f'#!/bin/sh\nexec {TOY[0]} {TOY[1]} "$@"\n')
    (programs / "mepof").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    subprocess.run([str(script)], env={**ENVIRONMENT, "PATH": path}, check=True)
    body = Toy()
    run(tmp_path, DIAMOND, body)
    assert "left" not in body.ran
