from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.errors import (
    EnvironmentLack,
    InputError,
    Interrupted,
    MepofError,
    StoreFull,
    WorkError,
)
from mepof.events import Event, StepFailed, StepFinished, StepNote, StepStarted
from mepof.plan.body import StepContext
from mepof.plan.engine import Engine, RunResult
from mepof.plan.execute import Done, Job, execute
from mepof.plan.journal import read_runs
from mepof.plan.model import HostInput, Step
from mepof.plan.store import Store

from .toy_bodies import DIAMOND, Toy, plan_of, run, toy, write_all

MEETING_SECONDS = 20


def digests(root: Path, *bodies: Toy) -> dict[str, str]:
    return {name: step.digest for name, step in run(root, DIAMOND, *bodies).steps.items()}


def reading(path: Path, identifier: str = "one") -> Step:
    return Step(identifier, "toy", {}, {"file": HostInput(str(path))})


def test_steps_get_the_artifacts_of_their_inputs(tmp_path: Path) -> None:
    last = run(tmp_path, DIAMOND, Toy()).steps["last"]
    text = (last.path / "text").read_text()
    assert 'left: {"n": 1}' in text and 'right: {"n": 2}' in text
    assert not last.cached


def test_a_second_run_executes_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, DIAMOND, Toy())
    body = Toy()
    events: list[Event] = []
    second = run(tmp_path, DIAMOND, body, sink=events.append)
    assert body.ran == []
    assert [type(event) for event in events] == [StepFinished] * 4
    assert second.steps == {n: replace(s, cached=True) for n, s in first.steps.items()}
    assert not any((tmp_path / "store" / "work").iterdir())


def test_a_cached_run_hardly_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(*(toy(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(30)))
    run(tmp_path, plan, Toy())
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    run(tmp_path, plan, Toy())
    assert len(synced) == 2


def test_independent_steps_run_in_parallel(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)

    def meet(context: StepContext) -> None:
        meeting.wait(MEETING_SECONDS)
        write_all(context)

    run(tmp_path, plan_of(toy("a"), toy("b", x=1)), Toy(meet), cores=2)


class Occupancy:
    """Records how many steps run at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = 0
        self.most = 0

    def __call__(self, context: StepContext) -> None:
        with self.lock:
            self.now += context.cores
            self.most = max(self.most, self.now)
        write_all(context)
        with self.lock:
            self.now -= context.cores


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_running_steps_stay_within_the_core_budget(tmp_path: Path, cores: int) -> None:
    watch = Occupancy()
    steps = [toy(f"small{n}", n=n) for n in range(6)]
    steps += [toy(f"big{n}", kind="big", n=n) for n in range(3)]
    big = Toy(watch, kind="big", cores=64)
    run(tmp_path, plan_of(*steps), Toy(watch), big, cores=cores)
    assert watch.most == cores
    assert len(big.ran) == 3


def test_a_step_that_yields_runs_beside_one_that_needs_a_core(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)

    def meet(context: StepContext) -> None:
        meeting.wait(MEETING_SECONDS)
        write_all(context)

    build = Toy(meet, kind="build", cores=64, yields=True)
    run(tmp_path, plan_of(toy("make", kind="build"), toy("boot")), Toy(meet), build, cores=2)


@pytest.mark.parametrize(("cores", "other"), [(1, {}), (2, {"cores": 64}), (2, {"yields": True})])
def test_a_step_that_yields_waits_for_a_free_core_and_for_others_like_it(
    tmp_path: Path, cores: int, other: dict[str, int | bool]
) -> None:
    watch = Occupancy()

    def alone(context: StepContext) -> None:
        with watch.lock:
            watch.now += 1
            watch.most = max(watch.most, watch.now)
        threading.Event().wait(0.05)
        with watch.lock:
            watch.now -= 1
        write_all(context)

    build = Toy(alone, kind="build", cores=64, yields=True)
    second = Toy(alone, **other)  # type: ignore[arg-type]
    run(tmp_path, plan_of(toy("a", kind="build"), toy("b")), second, build, cores=cores)
    assert watch.most == 1


@pytest.mark.parametrize(("device", "at_once"), [("phone", 1), (None, 2)])
def test_a_named_device_is_used_by_one_step_at_a_time(
    tmp_path: Path, device: str | None, at_once: int
) -> None:
    watch = Occupancy()
    meeting = threading.Barrier(at_once)

    def use(context: StepContext) -> None:
        meeting.wait(MEETING_SECONDS)
        watch(context)

    run(tmp_path, plan_of(toy("a"), toy("b", x=1)), Toy(use, device=device), cores=2)
    assert watch.most <= at_once


def test_the_longest_path_is_taken_first(tmp_path: Path) -> None:
    body = Toy()
    run(tmp_path, plan_of(toy("short"), toy("long", n=1), toy("end", "long")), body, cores=1)
    assert body.ran[0] == "long"


def test_what_makes_others_shorter_is_taken_before_the_longest_path(tmp_path: Path) -> None:
    ran: list[str] = []
    ground = Toy(kind="ground", first=True, ran=ran)
    steps = (toy("long", n=1), toy("end", "long"), toy("plain", kind="ground"))
    run(tmp_path, plan_of(*steps), Toy(ran=ran), ground, cores=1)
    assert ran == ["plain", "long", "end"]


def test_equal_steps_of_one_plan_are_made_once(tmp_path: Path) -> None:
    body = Toy()
    result = run(tmp_path, plan_of(toy("a", n=1), toy("b", n=1)), body, cores=2)
    assert len(body.ran) == 1
    assert result.steps["a"].digest == result.steps["b"].digest
    assert result.steps["b"].cached


def test_an_unchanged_result_stops_a_change_from_spreading(tmp_path: Path) -> None:
    constant = Toy(lambda context: (context.output / "f").touch(), kind="constant")
    plan = plan_of(toy("a", kind="constant", n=1), toy("b", "a"))
    run(tmp_path, plan, constant, Toy())
    body = Toy()
    changed = plan_of(toy("a", kind="constant", n=2), toy("b", "a"))
    assert not run(tmp_path, changed, constant, body).steps["a"].cached
    assert body.ran == []


@pytest.mark.parametrize("change", ["tool", "version", "param", "input"])
def test_every_ingredient_changes_the_fingerprint(tmp_path: Path, change: str) -> None:
    (tmp_path / "file").write_text("one")
    run(tmp_path, plan_of(reading(tmp_path / "file")), Toy(tools={"cc": "1"}, version=1))
    body = Toy(tools={"cc": "1"}, version=1)
    step = reading(tmp_path / "file")
    match change:
        case "tool":
            body.tools = {"cc": "2"}
        case "version":
            body.version = 2
        case "param":
            step = replace(step, params={"x": 1})
        case _:
            (tmp_path / "file").write_text("two")
    run(tmp_path, plan_of(step), body)
    assert body.ran == ["one"]


def test_the_path_of_a_host_input_does_not_matter(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).write_text("same")
    run(tmp_path, plan_of(reading(tmp_path / "here")), Toy())
    body = Toy()
    run(tmp_path, plan_of(reading(tmp_path / "there")), body)
    assert body.ran == []


def test_a_volatile_step_runs_every_time_and_reads_the_journal(tmp_path: Path) -> None:
    seen: list[Path | None] = []

    def look(context: StepContext) -> None:
        seen.append(context.journal)
        write_all(context)

    plan = plan_of(toy("a"), toy("report", "a", kind="report"))
    for _ in range(2):
        run(tmp_path, plan, Toy(look), Toy(look, kind="report", volatile=True))
    assert seen == [None, *[tmp_path / "out" / "journal.jsonl"] * 2]


def test_a_run_can_repeat_every_step(tmp_path: Path) -> None:
    before = digests(tmp_path, Toy())
    body = Toy()
    after = run(tmp_path, DIAMOND, body, again=True)
    assert len(body.ran) == 4
    assert {name: step.digest for name, step in after.steps.items()} == before


def damage_object(root: Path, digest: str) -> None:
    file = root / "store" / "objects" / digest / "text"
    file.chmod(0o644)
    file.write_text("")


def test_a_damaged_artifact_is_rebuilt(tmp_path: Path) -> None:
    before = digests(tmp_path, Toy())
    damage_object(tmp_path, before["left"])
    body = Toy()
    assert digests(tmp_path, body) == before
    assert body.ran == ["left"]


def fail_in(name: str, fault: Callable[[], None]) -> Callable[[StepContext], None]:
    def do(context: StepContext) -> None:
        if context.step.id == name:
            fault()
        write_all(context)

    return do


def raise_error(error: Exception) -> Callable[[], None]:
    def fault() -> None:
        raise error

    return fault


def test_after_a_failure_what_does_not_need_the_step_is_made(tmp_path: Path) -> None:
    plan = plan_of(
        toy("bad", n=1), toy("good", n=2), toy("lost", "bad"), toy("later", "good"), toy("aside")
    )
    body = Toy(fail_in("bad", raise_error(WorkError("it broke", "fix it"))))
    left: list[set[str]] = []

    def salvage(finished: RunResult) -> str:
        left.append(set(finished.steps))
        return "three are finished"

    engine = Engine(Store(tmp_path / "store"), {"toy": body}, 1, lambda event: None)
    with pytest.raises(WorkError) as caught:
        engine.run(plan, tmp_path / "out", salvage=salvage)
    assert caught.value.message == "bad: it broke"
    assert caught.value.remedy is not None and caught.value.remedy.startswith("fix it; see /")
    assert caught.value.remedy.endswith("; three are finished")
    assert left == [{"good", "later", "aside"}]
    assert sorted(body.ran) == ["aside", "bad", "good", "later"]
    (journalled,) = read_runs(tmp_path / "out")
    states = {s.step: s.state for s in journalled.steps.values()}
    assert states == {"bad": "failed", "good": "done", "later": "done", "aside": "done"}
    assert journalled.state == "failed"
    body = Toy()
    run(tmp_path, plan, body)
    assert body.ran == ["bad", "lost"]


def test_the_first_of_several_errors_ends_the_run_and_all_are_shown(tmp_path: Path) -> None:
    def fail(context: StepContext) -> None:
        raise WorkError(f"failure {len(body.ran)}")

    body, events = Toy(fail), list[Event]()
    with pytest.raises(WorkError, match="failure 1"):
        run(tmp_path, plan_of(toy("a"), toy("b", n=1)), body, cores=1, sink=events.append)
    failed = [event for event in events if isinstance(event, StepFailed)]
    assert [event.message for event in failed] == ["a: failure 1", "b: failure 2"]


def test_equal_steps_fail_once(tmp_path: Path) -> None:
    body = Toy(fail_in("a", raise_error(WorkError("it broke"))))
    with pytest.raises(WorkError, match="it broke"):
        run(tmp_path, plan_of(toy("a", n=1), toy("b", n=1)), body, cores=2)
    assert body.ran == ["a"]


@pytest.mark.parametrize(
    "error", [StoreFull("full"), EnvironmentLack("no clang"), Interrupted("stopped")]
)
def test_after_an_error_that_concerns_every_step_nothing_more_starts(
    tmp_path: Path, error: MepofError
) -> None:
    body = Toy(fail_in("bad", raise_error(error)))
    plan = plan_of(toy("bad", n=1), toy("last", "bad"), toy("aside"))
    with pytest.raises(type(error)):
        run(tmp_path, plan, body, cores=1)
    assert body.ran == ["bad"]


def test_an_interrupt_after_a_failure_stops_the_run(tmp_path: Path) -> None:
    cancel = threading.Event()

    def do(context: StepContext) -> None:
        if context.step.id == "bad":
            raise WorkError("it broke")
        cancel.set()
        write_all(context)

    body = Toy(do)
    plan = plan_of(toy("bad", n=1), toy("aside"), toy("last", "aside"), toy("lost", "bad"))
    engine = Engine(Store(tmp_path / "store"), {"toy": body}, 1, lambda event: None)
    with pytest.raises(Interrupted):
        engine.run(plan, tmp_path / "out", cancel=cancel)
    assert body.ran == ["bad", "aside"]
    assert read_runs(tmp_path / "out")[-1].state == "interrupted"


def test_after_a_failure_no_step_gets_a_device(tmp_path: Path) -> None:
    body = Toy(fail_in("bad", raise_error(WorkError("it broke"))))
    flash = Toy(kind="flash", device="phone", volatile=True)
    plan = plan_of(toy("bad"), toy("end", "bad"), toy("good", n=1), toy("f", "good", kind="flash"))
    with pytest.raises(WorkError, match="it broke"):
        run(tmp_path, plan, body, flash, cores=1)
    assert body.ran == ["bad", "good"]
    assert flash.ran == []


def test_a_failing_step_lets_running_ones_finish(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)
    failed = threading.Event()

    def do(context: StepContext) -> None:
        meeting.wait(MEETING_SECONDS)
        if context.step.id == "bad":
            raise EnvironmentLack("no clang", "install it")
        assert failed.wait(MEETING_SECONDS)
        write_all(context)

    def sink(event: Event) -> None:
        if not isinstance(event, StepStarted):
            failed.set()

    body = Toy(do)
    plan = plan_of(toy("good", n=1), toy("bad", n=2), toy("later", "good"))
    with pytest.raises(EnvironmentLack):
        run(tmp_path, plan, body, sink=sink)
    assert sorted(body.ran) == ["bad", "good"]
    (journalled,) = read_runs(tmp_path / "out")
    assert {s.step: s.state for s in journalled.steps.values()} == {"good": "done", "bad": "failed"}


def test_an_unexpected_exception_is_reported_as_a_bug_in_mepof(tmp_path: Path) -> None:
    body = Toy(fail_in("left", raise_error(ValueError("two\nlines"))))
    with pytest.raises(WorkError) as caught:
        run(tmp_path, DIAMOND, body)
    assert "left: this is a bug in mepof: ValueError: two lines" in str(caught.value)
    assert "\n" not in str(caught.value)
    (log,) = (tmp_path / "store" / "logs").glob("left-*.log")
    assert "Traceback" in log.read_text() and str(log) in str(caught.value)


def test_the_kind_of_an_error_is_kept(tmp_path: Path) -> None:
    body = Toy(fail_in("left", raise_error(EnvironmentLack("no adb", "install adb"))))
    with pytest.raises(EnvironmentLack, match="left: no adb"):
        run(tmp_path, DIAMOND, body)


def test_missing_inputs_and_kinds_are_reported_before_the_first_step(tmp_path: Path) -> None:
    body = Toy()
    with pytest.raises(InputError, match="does not exist"):
        run(tmp_path, plan_of(toy("a"), reading(tmp_path / "none")), body)
    with pytest.raises(InputError, match="kind `odd`"):
        run(tmp_path, plan_of(toy("a"), toy("b", kind="odd")), body)
    assert body.ran == []


def test_reading_a_host_input_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one")
    events: list[Event] = []
    run(tmp_path, plan_of(reading(tmp_path / "file")), Toy(), sink=events.append)
    assert events[0] == StepNote("one", f"reading {tmp_path / 'file'}")


def test_an_input_that_changes_while_it_is_read_gives_no_artifact(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")

    def edit(context: StepContext) -> None:
        file.write_text("another")
        write_all(context)

    with pytest.raises(WorkError, match="changed while it was being read"):
        run(tmp_path, plan_of(reading(file)), Toy(edit))
    assert not any((tmp_path / "store" / "actions").iterdir())


def test_the_journal_records_steps_and_their_inputs(tmp_path: Path) -> None:
    body = Toy(tools={"clang": "19"}, phase="build")
    result = run(tmp_path, DIAMOND, body)
    run(tmp_path, DIAMOND, body)
    first, second = read_runs(tmp_path / "out")
    assert (first.program, first.seed, first.tools) == ("a program.", 7, {"clang": "19"})
    assert first.versions.keys() == {"mepof", "python", "host"}
    for name, made in result.steps.items():
        step = first.steps[name]
        assert (step.digest, step.fingerprint) == (made.digest, made.fingerprint)
        assert (step.state, step.phase, step.reason) == (
            "done",
            "build",
            "never made in this store",
        )
        assert second.steps[name].state == "cached"
        assert second.steps[name].seconds == made.seconds
    document = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    assert all(json.loads(line) for line in document)


def test_the_caller_chooses_how_steps_are_performed(tmp_path: Path) -> None:
    done: list[str] = []

    def elsewhere(
        job: Job, store: Store, emit: Callable[[Event], None], cancel: threading.Event
    ) -> Done:
        done.append(job.step.id)
        return execute(job, store, emit, cancel)

    bodies = {"toy": Toy()}
    engine = Engine(Store(tmp_path / "store"), bodies, 2, lambda event: None, elsewhere)
    engine.run(DIAMOND, tmp_path / "out")
    assert sorted(done) == ["first", "last", "left", "right"]
    done.clear()
    engine.run(DIAMOND, tmp_path / "again")
    assert done == []
