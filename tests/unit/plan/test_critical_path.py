"""The critical path of a run."""

from __future__ import annotations

from mepof.plan.critical_path import Link, critical_path
from mepof.plan.journal import JournalledRun, JournalledStep, StepState


def at(seconds: int) -> str:
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}+00:00"


def step(
    name: str, began: int, ended: int, *inputs: str, state: StepState = "done"
) -> JournalledStep:
    return JournalledStep(
        name, "toy", "build", "f", state, started=at(began), ended=at(ended), inputs=inputs
    )


def run(*steps: JournalledStep) -> JournalledRun:
    known = {each.step: each for each in steps}
    return JournalledRun("r", "p", 1, {}, {}, "/s", 2, at(0), steps=known)


def test_the_path_follows_the_input_that_ended_last() -> None:
    path = critical_path(
        run(
            step("source", 0, 5),
            step("guest", 0, 9),
            step("plain", 5, 65, "source"),
            step("opt", 70, 90, "source", "guest"),
            step("measure", 90, 100, "plain", "opt"),
        )
    )
    assert [link.step for link in path] == ["guest", "opt", "measure"]
    assert path[1] == Link("opt", seconds=20, waited=61)
    assert sum(link.seconds + link.waited for link in path) == 100


def test_steps_from_the_store_and_failed_ones_are_not_on_the_path() -> None:
    path = critical_path(
        run(
            step("source", 0, 50, state="cached"),
            step("plain", 1, 11, "source"),
            step("opt", 11, 60, "plain", state="failed"),
        )
    )
    assert path == (Link("plain", seconds=10, waited=1),)


def test_a_run_in_which_nothing_ran_has_none() -> None:
    assert critical_path(run(step("a", 0, 1, state="cached"))) == ()
