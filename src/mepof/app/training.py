"""Which cases a training runs, so that gains can be stated apart for those that it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mepof.app.apps import Action, App
from mepof.suite.cases import Case, CaseId, load_suite, suite_names


def exercised(actions: Iterable[Action]) -> frozenset[CaseId]:
    """The cases that actions run: as a whole, or as part of a mix."""
    done = tuple(actions)
    return frozenset(
        (case.suite, case.name) for case in _every_case() if any(_runs(a, case) for a in done)
    )


def without(apps: Iterable[App], names: Collection[str]) -> tuple[App, ...]:
    """The apps without the actions that run any case of these names.

    Args:
        names: of suites, of groups (G4's metrics), or of cases.
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
    """Every name that ``without`` knows."""
    cases = _every_case()
    names = [name for case in cases for name in (case.suite, case.metric, case.name)]
    return tuple(dict.fromkeys(names))


def _runs(action: Action, case: Case) -> bool:
    return action.argv == case.argv or case.metric in action.includes


def _every_case() -> tuple[Case, ...]:
    return tuple(case for name in suite_names() for case in load_suite(name).cases)
