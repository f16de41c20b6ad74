"""The cases that training runs, so that held-out cases can be reported separately."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mepof.app.apps import Action, App
from mepof.suite.cases import Case, CaseId, load_suite, suite_names


def exercised(actions: Iterable[Action]) -> frozenset[CaseId]:
    """The cases that actions run, alone or as part of a mix."""
    done = tuple(actions)
    return frozenset(
        (case.suite, case.name) for case in _every_case() if any(_runs(a, case) for a in done)
    )


def without(apps: Iterable[App], names: Collection[str]) -> tuple[App, ...]:
    """The apps without the actions that run any of the named cases.

    Args:
        names: of suites, groups (G4's metrics) or cases.
    """
    left_out = [c for c in _every_case() if not {c.suite, c.metric, c.name}.isdisjoint(names)]
    return tuple(
        app.model_copy(
            update={
                "actions": tuple(
                    a for a in app.actions if not any(_runs(a, case) for case in left_out)
                )
            }
        )
        for app in apps
    )


def names_to_leave_out() -> tuple[str, ...]:
    """Every name that ``without`` accepts."""
    cases = _every_case()
    names = [name for case in cases for name in (case.suite, case.metric, case.name)]
    return tuple(dict.fromkeys(names))


def _runs(action: Action, case: Case) -> bool:
    return action.argv == case.argv or case.metric in action.includes


def _every_case() -> tuple[Case, ...]:
    return tuple(case for name in suite_names() for case in load_suite(name).cases)
