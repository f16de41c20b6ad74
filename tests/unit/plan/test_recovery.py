"""Steps that fail and are recovered from: with another plan, which the next run knows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mepof.errors import InputError, WorkError
from mepof.events import Event, StepFailed, StepFinished
from mepof.plan.body import StepContext
from mepof.plan.engine import Engine, RunResult
from mepof.plan.explain import explain
from mepof.plan.journal import read_runs
from mepof.plan.model import Plan, Step, StepInput
from mepof.plan.recovery import affected, replaced
from mepof.plan.store import Store

from .toy_bodies import Toy, plan_of, toy, write_all

PLAN = plan_of(
    toy("source"),
    toy("kernel", "source"),
    toy("aside", "kernel", kind="boot"),
    toy("run", "kernel", kind="boot", n=1),
    toy("last", "run", "kernel"),
    toy("apart", "source", x=1),
)


class Down(WorkError):
    """A kernel that goes down."""


@dataclass
class Boot(Toy):
    """Fails on a kernel that is not sound, and knows how to make one that is."""

    kind: str = "boot"
    asked: list[Exception | None] = field(default_factory=list)

    def recover(self, plan: Plan, step: Step, error: Exception | None) -> Plan | None:
        self.asked.append(error)
        if "kernel" not in step.inputs or not (error is None or isinstance(error, Down)):
            return None
        if step.inputs["kernel"] != StepInput("kernel"):
            return None
        return replaced(plan, "kernel", toy("kernel/sound", "source", sound=True))


def boots(context: StepContext) -> None:
    write_all(context)
    if '"sound": true' not in (context.output / "text").read_text():
        raise Down("it went down")


def run(
    root: Path, *bodies: Toy, plan: Plan = PLAN, sink: Callable[[Event], None] = lambda event: None
) -> RunResult:
    engine = Engine(Store(root / "store"), {b.kind: b for b in bodies}, 1, sink)
    return engine.run(plan, root / "out")


def test_a_step_that_fails_is_repeated_in_the_plan_of_its_recovery(tmp_path: Path) -> None:
    body, others, events = Boot(boots), Toy(), list[Event]()
    result = run(tmp_path, body, others, sink=events.append)
    # What has nothing to do with it ran once.
    assert sorted(others.ran) == ["apart", "kernel", "kernel/sound", "last", "source"]
    assert sorted(body.ran) == ["aside", "run", "run"]
    assert result.plan.step("last").inputs["kernel"] == StepInput("kernel/sound")
    assert "sound" in (result.steps["last"].path / "text").read_text()
    assert set(result.steps) == {step.id for step in result.plan.steps}
    (failed,) = (event for event in events if isinstance(event, StepFailed))
    assert failed.retried
    (known,) = read_runs(tmp_path / "out")
    assert known.state == "done"
    assert {step.state for step in known.steps.values()} == {"done"}


def test_a_second_run_takes_the_recovery_from_the_store(tmp_path: Path) -> None:
    first = run(tmp_path, Boot(boots), Toy())
    body, others, events = Boot(boots), Toy(), list[Event]()
    second = run(tmp_path, body, others, sink=events.append)
    assert body.ran == others.ran == []
    assert all(isinstance(event, StepFinished) for event in events)
    assert second.plan == first.plan
    assert {n: s.digest for n, s in second.steps.items()} == {
        n: s.digest for n, s in first.steps.items()
    }


def test_an_explanation_shows_the_recovery_of_an_earlier_run(tmp_path: Path) -> None:
    bodies = {"toy": Toy(), "boot": Boot(boots)}
    before = explain(PLAN, Store(tmp_path / "store"), bodies)
    assert [each.step for each in before] == [step.id for step in PLAN.steps]
    result = run(tmp_path, Boot(boots), Toy())
    after = explain(PLAN, Store(tmp_path / "store"), bodies)
    assert [each.step for each in after] == [step.id for step in result.plan.steps]
    assert {each.state for each in after} == {"cached"}
    (last,) = (each for each in after if each.step == "last")
    assert sorted(last.needs) == ["kernel/sound", "run"]


def test_a_step_without_a_recovery_fails_the_run(tmp_path: Path) -> None:
    def fails(context: StepContext) -> None:
        raise InputError("wrong")

    body = Boot(fails)
    with pytest.raises(InputError, match="wrong"):
        run(tmp_path, body, Toy())
    assert body.ran == ["run", "aside"]
    assert [type(error) for error in body.asked if error is not None] == [InputError] * 2
    assert read_runs(tmp_path / "out")[-1].state == "failed"


def test_a_step_that_failed_is_repeated_if_another_recovery_changes_what_it_reads(
    tmp_path: Path,
) -> None:
    @dataclass
    class Late(Boot):
        def recover(self, plan: Plan, step: Step, error: Exception | None) -> Plan | None:
            return None if step.id == "aside" else super().recover(plan, step, error)

    body = Late(boots)
    plan = plan_of(
        toy("source"),
        toy("kernel", "source"),
        toy("aside", "kernel", kind="boot"),
        toy("first", "aside"),
        toy("second", "first"),
        toy("run", "kernel", kind="boot", n=1),
    )
    result = run(tmp_path, body, Toy(), plan=plan)
    assert body.ran[0] == "aside"
    assert sorted(body.ran) == ["aside", "aside", "run", "run"]
    assert set(result.steps) == {step.id for step in result.plan.steps}


def test_a_step_recovers_after_another_has_failed(tmp_path: Path) -> None:
    def breaks(context: StepContext) -> None:
        if context.step.id == "bad":
            raise WorkError("it broke")
        write_all(context)

    chain = [toy("bad", x=2), toy("b", "bad"), toy("c", "b"), toy("d", "c")]
    events: list[Event] = []
    with pytest.raises(WorkError, match="bad: it broke"):
        run(
            tmp_path,
            *(Boot(boots), Toy(breaks)),
            plan=plan_of(*chain, *PLAN.steps),
            sink=events.append,
        )
    failed = [(e.step, e.retried) for e in events if isinstance(e, StepFailed)]
    assert failed == [("bad", False), ("run", True)]
    made = {e.step for e in events if isinstance(e, StepFinished)}
    assert made == {step.id for step in PLAN.steps} | {"kernel/sound"}
    assert read_runs(tmp_path / "out")[-1].state == "failed"


def test_a_recovery_that_does_not_help_fails_the_run_with_the_second_error(tmp_path: Path) -> None:
    def never(context: StepContext) -> None:
        raise Down(f"attempt {len(body.ran)}")

    body, others = Boot(never), Toy()
    with pytest.raises(Down, match="attempt 2"):
        run(tmp_path, body, others)
    assert others.ran.count("kernel/sound") == 1


def test_a_recovery_that_fails_fails_the_run(tmp_path: Path) -> None:
    def makes(context: StepContext) -> None:
        if context.step.id == "kernel/sound":
            raise WorkError("it cannot be made sound")
        write_all(context)

    with pytest.raises(WorkError, match="cannot be made sound"):
        run(tmp_path, Boot(boots), Toy(makes))
    # It is tried again, as nothing is known yet.
    assert run(tmp_path, Boot(boots), Toy()).plan.step("kernel/sound")


def test_what_runs_on_the_old_plan_meanwhile_is_repeated(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)

    def both(context: StepContext) -> None:
        if len(body.ran) <= 2:
            meeting.wait(20)
        boots(context)

    body, events = Boot(both), list[Event]()
    engine = Engine(Store(tmp_path / "store"), {"toy": Toy(), "boot": body}, 2, events.append)
    result = engine.run(PLAN, tmp_path / "out")
    assert sorted(body.ran) == ["aside", "aside", "run", "run"]
    assert [e.retried for e in events if isinstance(e, StepFailed)] == [True, True]
    assert result.steps["run"].digest != result.steps["aside"].digest


def test_a_new_step_comes_after_what_it_reads_and_before_what_reads_it() -> None:
    plan = plan_of(
        toy("source"), toy("kernel", "source"), toy("aside", "kernel"), toy("guest"), toy("end")
    )
    new = toy("new", "source", "guest", "kernel")
    found = replaced(plan, "kernel", new)
    names = [step.id for step in found.steps]
    assert names == ["source", "kernel", "guest", "new", "aside", "end"]
    assert found.step("new") == new
    assert found.step("aside").inputs == {"kernel": StepInput("new")}
    assert affected(found, plan) == {"new", "aside"}


def test_everything_that_reads_what_changed_is_affected() -> None:
    steps = tuple(replace(s, params={"x": 1}) if s.id == "kernel" else s for s in PLAN.steps)
    assert affected(replace(PLAN, steps=steps), PLAN) == {"kernel", "aside", "run", "last"}
    assert affected(PLAN, PLAN) == frozenset()
