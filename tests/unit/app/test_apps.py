"""Apps and their actions."""

from __future__ import annotations

import pytest

from mepof.app.apps import app_names, guest_additions, load_app, memory_of, programs_of
from mepof.app.training import exercised
from mepof.errors import InputError
from mepof.suite.cases import cases_of, load_suite, metric_names, suite_names


def test_every_app_has_actions_with_limits() -> None:
    assert "kbench" in app_names()
    for name in app_names():
        actions = load_app(name).actions
        assert actions
        assert len({action.name for action in actions}) == len(actions)
        assert all(action.argv and action.seconds > 0 for action in actions)


def test_kbench_has_an_action_for_every_default_case() -> None:
    played = {action.argv for action in load_app("kbench").actions}
    assert {case.argv for case in cases_of(())} <= played


def test_an_app_with_programs_of_its_own_adds_them_to_the_guest() -> None:
    programs = programs_of("general")
    assert programs is not None and programs.native == "general"
    assert guest_additions()["general"] == ("general",)
    assert guest_additions()["kbench"] == ()


def test_training_on_general_trains_no_case() -> None:
    assert exercised(load_app("general").actions) == frozenset()


def test_an_unknown_app_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown app `none`"):
        load_app("none")


def test_actions_include_groups_that_exist() -> None:
    for name in app_names():
        included = {group for action in load_app(name).actions for group in action.includes}
        assert included <= set(metric_names())


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_is_an_app_whose_actions_are_its_cases(name: str) -> None:
    app, suite = load_app(name), load_suite(name)
    assert name in app_names()
    assert {a.name: a.argv for a in app.actions} == {c.name: c.argv for c in suite.cases}
    assert exercised(app.actions) >= {(c.suite, c.name) for c in suite.cases}
    assert guest_additions()[name] == ((name,) if suite.programs else ())
    assert memory_of([load_app("kbench"), app]) >= suite.memory
