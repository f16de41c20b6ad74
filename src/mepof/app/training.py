"""The cases that training runs, so that held-out cases can be reported separately."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mepof.app.apps import Action, App, app_names, load_app
from mepof.app.measured import suite_name
from mepof.app.own import OwnApp
from mepof.suite.cases import Case, CaseId, load_suite, suite_names


def exercised(actions: Iterable[Action]) -> frozenset[CaseId]:
    """The cases that actions run, alone or as part of a mix."""
    done = tuple(actions)
    return frozenset(
        (case.suite, case.name) for case in _every_case() if any(_runs(a, case) for a in done)
    )


def without(apps: Iterable[App], names: Collection[str]) -> tuple[App, ...]:
    """The apps without the named actions, and without those that run any of the named cases.

    Args:
        names: of suites, groups (G4's metrics) or cases; what none of these is called, of apps or
            actions.
    """
    cases = _every_case()
    left_out = [case for case in cases if not _names_of(case).isdisjoint(names)]
    others = set(names).difference(*map(_names_of, cases))

    def kept(app: str, action: Action) -> bool:
        return others.isdisjoint((app, action.name, f"{app}/{action.name}")) and not any(
            _runs(action, case) for case in left_out
        )

    return tuple(
        app.model_copy(update={"actions": tuple(a for a in app.actions if kept(_called(app), a))})
        for app in apps
    )


def names_to_leave_out() -> tuple[str, ...]:
    """Every name that ``without`` accepts of suites and installed apps."""
    names = {name for case in _every_case() for name in _names_of(case)}
    names.update(name for app in app_names() for name in names_in(load_app(app)))
    return tuple(sorted(names))


def names_in(app: App) -> tuple[str, ...]:
    """The names of an app and of its actions, alone and after the app's."""
    called, actions = _called(app), [action.name for action in app.actions]
    return (called, *actions, *(f"{called}/{action}" for action in actions))


def _called(app: App) -> str:
    """What programs call an app; one of the user's is called as in reports."""
    return suite_name(app) if isinstance(app, OwnApp) else app.name


def _names_of(case: Case) -> frozenset[str]:
    return frozenset((case.suite, case.metric, case.name, f"{case.suite}/{case.name}"))


def _runs(action: Action, case: Case) -> bool:
    return action.argv == case.argv or case.metric in action.includes


def _every_case() -> tuple[Case, ...]:
    return tuple(case for name in suite_names() for case in load_suite(name).cases)
