"""The policies that pick actions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.app.apps import Action, App
from mepof.errors import InputError
from mepof.scenario.protocol import SCENARIOS, Part
from mepof.scenario.script import read_script


def app(name: str, *actions: str) -> App:
    return App(
        name=name,
        title=name,
        action=tuple(Action(name=action, argv=(action,), seconds=1) for action in actions),
    )


ONE = app("one", "read", "write", "open")
TWO = app("two", "fork")


def pick(
    scenario: str,
    *apps: App,
    count: int = 9,
    seed: int = 1,
    scripts: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
) -> list[str]:
    parts = tuple(
        Part(app, None if weight is None else Fraction(weight), script)
        for app, weight, script in zip_longest(apps, weights, scripts)
    )
    return [action.name for action in SCENARIOS.get(scenario).pick(parts, count, seed)]


@given(st.integers(0, 2**64), st.integers(0, 99))
def test_rand_is_determined_by_its_seed(seed: int, count: int) -> None:
    picked = pick("rand", ONE, TWO, count=count, seed=seed)
    assert picked == pick("rand", ONE, TWO, count=count, seed=seed)
    assert len(picked) == count
    assert set(picked) <= {"read", "write", "open", "fork"}


def test_rand_draws_from_all_apps_and_differs_by_seed() -> None:
    assert set(pick("rand", ONE, TWO, count=200)) == {"read", "write", "open", "fork"}
    assert pick("rand", ONE, count=50, seed=1) != pick("rand", ONE, count=50, seed=2)


def test_rand_draws_the_same_in_every_release() -> None:
    assert pick("rand", ONE, TWO, count=6) == ["read", "fork", "fork", "write", "write", "write"]


def test_rand_draws_an_app_by_its_weight_and_then_one_of_its_actions() -> None:
    drawn = Counter(pick("rand", ONE, TWO, count=6000, weights=("1", "3")))
    assert drawn["fork"] == pytest.approx(4500, rel=0.05)
    assert drawn["read"] == pytest.approx(500, rel=0.2)
    # An app without a weight has the weight 1.
    drawn = Counter(pick("rand", ONE, TWO, count=6000, weights=("2",)))
    assert drawn["fork"] == pytest.approx(2000, rel=0.1)


def test_trav_covers_every_action_once_in_order_whatever_the_seed() -> None:
    for seed, count in ((1, 1), (2, 99)):
        assert pick("trav", ONE, TWO, seed=seed, count=count) == ["read", "write", "open", "fork"]


@pytest.mark.parametrize("scenario", ["rand", "trav"])
@pytest.mark.parametrize("apps", [(), (app("none"),)])
def test_a_scenario_with_nothing_to_do_is_an_error(scenario: str, apps: tuple[App, ...]) -> None:
    with pytest.raises(InputError, match="no app to exercise"):
        pick(scenario, *apps)


def test_manual_picks_nothing_and_takes_the_console() -> None:
    assert pick("manual") == []
    assert [name for name, s in SCENARIOS.all().items() if s.interactive] == ["manual"]


def test_script_follows_its_lines() -> None:
    text = "# a comment\nwrite\n\n  read # again\nwrite\n"
    assert pick("script", ONE, scripts=(text,)) == ["write", "read", "write"]
    assert pick("script", ONE, TWO, scripts=("open", "fork\n")) == ["open", "fork"]


def test_script_runs_all_actions_of_an_app_without_a_file() -> None:
    assert pick("script", ONE) == ["read", "write", "open"]
    assert pick("script", TWO, ONE, scripts=("fork\nfork",)) == ["fork", "fork", *pick("trav", ONE)]


@pytest.mark.parametrize(
    ("apps", "scripts", "message"),
    [
        ((ONE,), ("# nothing\n",), "lists no action"),
        ((), (), "lists no action"),
        ((ONE,), ("raed",), "app `one` has no action `raed`"),
    ],
)
def test_a_script_that_does_not_fit_is_an_error(
    apps: tuple[App, ...], scripts: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pick("script", *apps, scripts=scripts)


def test_a_misspelt_action_gets_a_suggestion() -> None:
    with pytest.raises(InputError) as caught:
        pick("script", ONE, scripts=("raed",))
    assert caught.value.remedy == "did you mean `read`?"


def test_a_script_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_script(tmp_path / "none")
    with pytest.raises(InputError, match="Is a directory"):
        read_script(tmp_path)
    (tmp_path / "image").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_script(tmp_path / "image")
