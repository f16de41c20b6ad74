"""The cases that training runs, and training without some of them."""

from __future__ import annotations

from mepof.app.apps import load_app
from mepof.app.training import exercised, names_to_leave_out, without

KBENCH = load_app("kbench")


def ran(*names: str) -> set[str]:
    found = exercised(KBENCH.action(name) for name in names)
    assert {suite for suite, _ in found} <= {"mepof"}
    return {case for _, case in found}


def test_an_action_with_the_command_of_a_case_runs_it() -> None:
    assert ran("pipe128", "proc") == {"pipe128", "proc"}
    assert ran() == set()


def test_a_mix_runs_the_cases_that_it_begins_with() -> None:
    assert ran("mix-ipc") == {"pipe128", "pipe512"}
    assert ran("mix-proc") == {"proc", "syscall", "overhead"}
    assert ran("mix-all") == ran(*(action.name for action in KBENCH.actions))
    assert len(ran("mix-all")) == 8


def test_leaving_out_a_case_leaves_out_the_mixes_with_it() -> None:
    for name in ("pipe128", "file", "proc"):
        (app,) = without([KBENCH], [name])
        left = ran(*(action.name for action in app.actions))
        assert left.isdisjoint({"pipe128": {"pipe128"}, "proc": {"proc"}}.get(name, set()))
        assert len(left) == {"pipe128": 7, "file": 5, "proc": 7}[name]
    assert without([KBENCH], []) == (KBENCH,)
    assert without([KBENCH], ["mepof"])[0].actions == ()


def test_apps_and_actions_can_be_left_out() -> None:
    general = load_app("general")
    names = {action.name for action in general.actions}

    def left(*given: str) -> set[str]:
        (app,) = without([general], given)
        return {action.name for action in app.actions}

    assert left("rings", "timers") == names - {"rings", "timers"}
    assert left("general") == set()
    # A suite has that name, of which the app runs no case.
    assert left("threads") == names
    assert left("general/threads") == names - {"threads"}
    assert left("kbench/rings") == names
    (kbench,) = without([KBENCH], ["mix-io", "mepof/pipe128"])
    assert ran(*(action.name for action in kbench.actions)) == ran("mix-all") - {"pipe128"}
    assert "mix-io" not in {action.name for action in kbench.actions}


def test_all_that_can_be_trained_on_can_be_left_out() -> None:
    known = set(names_to_leave_out())
    assert {"mepof", "pipe", "pipe128", "mepof/syscall"} <= known
    assert {"general", "rings", "general/threads", "kbench", "mix-io", "ipc/pipe-4"} <= known


def test_included_groups_are_not_part_of_the_identity_of_a_training() -> None:
    action = KBENCH.action("mix-io")
    assert action.includes == ("file",)
    assert "includes" not in repr(action)
