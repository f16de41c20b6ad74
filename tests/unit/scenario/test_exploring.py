"""Scenarios drive the apps of a phone: they reach their screens, again and again the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.android_app import App, Screen, generated, parse
from writers.android_phone import AndroidPhone

from mepof.errors import InputError, WorkError
from mepof.scenario.driver import Driver, only_given
from mepof.scenario.driving import Budget
from mepof.scenario.graph import Graph, Memory
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.screen import Offer

from .played import TROUBLES, budgets, drive, listed, only, shown

SMALL = generated(20, 1)


def test_trav_reaches_every_state_of_an_app_of_200() -> None:
    app = generated(200, 5)
    phone = AndroidPhone.of(app)
    driven = only(drive("trav", phone, budgets(app)))
    assert shown(phone, app) == 200
    assert (driven.states, driven.ended, driven.crashes) == (200, "complete", ())
    assert driven.tried == driven.offered


#: ``manual`` does what a person does.
REPEATED = [name for name, each in SCENARIOS.all().items() if not each.interactive]


@pytest.mark.parametrize("app", [SMALL, TROUBLES], ids=["small", "troubles"])
@pytest.mark.parametrize("scenario", REPEATED)
def test_a_scenario_does_the_same_for_the_same_seed(scenario: str, app: App) -> None:
    def commands(seed: int) -> list[str]:
        phone = AndroidPhone.of(app)
        given = None
        if scenario == "script":
            recorded = drive("trav", AndroidPhone.of(app), budgets(app, actions=60), seed)
            given = "\n".join(recorded.route)
        screens = drive(scenario, phone, budgets(app, actions=60), seed, given)
        return [*phone.commands, str(phone.shown), str(screens)]

    assert commands(1) == commands(1)
    if scenario in ("rand", "learned"):
        assert commands(1) != commands(2)


@pytest.mark.parametrize("scenario", ["trav", "learned"])
def test_a_route_is_a_script_that_shows_the_same_screens(scenario: str) -> None:
    phone = AndroidPhone.of(SMALL)
    screens = drive(scenario, phone, budgets(SMALL, actions=80))
    again = AndroidPhone.of(SMALL)
    replayed = drive("script", again, budgets(SMALL), given="\n".join(screens.route))
    assert again.shown == phone.shown
    assert only(replayed).actions == len(screens.route)


def test_learned_sees_more_states_than_the_others_in_as_many_actions() -> None:
    seen = dict.fromkeys(("rand", "trav", "learned"), 0)
    for seed in range(4):
        app = generated(60, 40 + seed)
        for scenario in seen:
            phone = AndroidPhone.of(app)
            drive(scenario, phone, budgets(app, actions=120))
            seen[scenario] += shown(phone, app)
    assert seen["learned"] > 1.15 * seen["trav"] > 1.15 * seen["rand"]


def test_what_a_run_has_learned_helps_the_next_one() -> None:
    app = generated(60, 50)
    phone = AndroidPhone.of(app)
    first = drive("learned", phone, budgets(app, actions=240))
    assert first.memory is not None
    again = AndroidPhone.of(app)
    drive("learned", again, budgets(app, actions=100), given=first.memory.model_dump_json())
    alone = AndroidPhone.of(app)
    drive("learned", alone, budgets(app, actions=100))
    assert shown(again, app) > shown(alone, app)


def test_no_more_actions_are_performed_than_are_allowed() -> None:
    for actions in range(1, 12):
        for scenario in ("rand", "trav", "learned"):
            driven = only(
                drive(scenario, AndroidPhone.of(TROUBLES), budgets(TROUBLES, actions=actions))
            )
            assert (driven.actions, driven.ended) == (actions, "actions")


def test_a_file_that_is_no_memory_is_refused() -> None:
    with pytest.raises(InputError, match="not the memory of an earlier run"):
        drive("learned", AndroidPhone.of(SMALL), budgets(SMALL), given="{}x")


def test_dialogs_are_answered_and_crashes_and_anrs_reported() -> None:
    phone, notes = AndroidPhone.of(TROUBLES), list[str]()
    driven = only(drive("trav", phone, budgets(TROUBLES), notes=notes))
    assert driven.states == 2
    assert driven.crashes == (
        "after `tap Button crash crash now` on `Troubles`: org.example.troubles has stopped",
        "after `tap Button leave leave` on `Troubles`: its process is gone",
    )
    [hung] = driven.anrs
    assert "isn't responding" in hung
    # The permission was given.
    assert shown(phone, TROUBLES) == 2
    assert driven.restarts >= 4
    assert "2 states" in notes[0] and "ANR after" in notes[0]


@pytest.mark.parametrize("how", ["@crash", "@anr"])
@pytest.mark.parametrize("scenario", ["trav", "learned", "rand"])
def test_an_app_that_ends_at_once_is_passed_over_and_alone_it_is_an_error(
    scenario: str, how: str
) -> None:
    broken = App("org.example.broken", {"main": Screen("main", [], how)})
    phone = AndroidPhone.of(broken, SMALL)
    if scenario != "rand":
        with pytest.raises(WorkError, match="no app started on played"):
            drive(scenario, phone, budgets(broken, actions=10))
    first, second = drive(scenario, phone, budgets(broken, SMALL, actions=10)).apps
    assert first.crashes or first.anrs
    if scenario != "rand":
        assert first.ended == "did not start"
    assert second.ended == "actions"


def test_a_screen_that_cannot_be_read_once_is_read_again() -> None:
    phone = AndroidPhone.of(SMALL)
    phone.dumps = ["ERROR: could not get idle state.\n", "<hierarchy><node"]
    assert only(drive("trav", phone, budgets(SMALL))).states == 20


def test_a_phone_whose_dumps_are_not_xml_is_an_error() -> None:
    phone = AndroidPhone.of(SMALL)
    phone.dumps = ["garbage"] * 9
    with pytest.raises(WorkError, match="no app started"):
        drive("trav", phone, budgets(SMALL))


def test_time_ends_a_scenario_and_the_report_says_so() -> None:
    for scenario in ("rand", "trav", "learned"):
        phone = AndroidPhone.of(SMALL)
        driven = only(drive(scenario, phone, budgets(SMALL, seconds=30)))
        assert driven.ended == ("actions" if scenario == "rand" else "time")
        assert phone.seconds < 40
        assert 0 < driven.actions < 200


def test_monkey_that_its_limit_ends_is_counted_by_its_events() -> None:
    phone = AndroidPhone.of(SMALL)
    driven = only(drive("rand", phone, budgets(SMALL, seconds=30, actions=1000)))
    assert driven.ended == "time"
    assert driven.actions == 100  # of 300 ms each


def driver(scenario: str, *packages: str, given: str | None = None) -> Driver:
    return Driver(
        SCENARIOS.get(scenario),
        [listed(*packages)],
        1,
        given,
        [1.0],
        lambda text: None,
        lambda count, name: None,
    )


def test_an_unknown_package_is_refused_before_anything_is_driven() -> None:
    phone = AndroidPhone.of(SMALL)
    asked = driver("rand", SMALL.package, "org.example.none")
    with pytest.raises(InputError, match=r"has no package `org\.example\.none`"):
        asked.drive(phone)
    assert not phone.shown


def test_an_activity_may_be_called_as_errors_begin() -> None:
    phone = AndroidPhone.of(SMALL)
    app = budgets(SMALL)[0].app.model_copy(update={"activity": ".ErrorReport"})
    drive("trav", phone, (Budget(app, 10),))
    assert phone.shown[SMALL.package]


def test_an_unknown_activity_and_an_app_without_one_are_refused() -> None:
    phone = AndroidPhone.of(SMALL)
    wrong = budgets(SMALL)[0].app.model_copy(update={"activity": ".Nothing"})
    with pytest.raises(InputError, match=r"cannot start .*\.Nothing: Error: Activity class"):
        drive("trav", phone, (Budget(wrong, 10),))
    absent = parse("package org.example.absent\n")
    for scenario in ("trav", "rand"):
        asked = budgets(absent)[0].app.model_copy(update={"activity": None})
        with pytest.raises(InputError, match=r"starts nothing of `org\.example\.absent`"):
            drive(scenario, phone, (Budget(asked, 10, 5),))


def test_what_was_done_is_written(tmp_path: Path) -> None:
    asked = driver("script", SMALL.package, given=f"launch {SMALL.package}/.Main\ntap 5 130\n")
    asked.drive(AndroidPhone.of(SMALL))
    asked.write(tmp_path)
    assert (tmp_path / "route.txt").read_text() == f"launch {SMALL.package}/.Main\ntap 5 130\n"
    assert not (tmp_path / Memory.file).exists()


def test_two_files_for_one_scenario_are_refused() -> None:
    with pytest.raises(InputError, match="one file for all apps"):
        only_given(["tap 1 1", None, "tap 2 2"])
    assert only_given([None, "tap 1 1"]) == "tap 1 1"


def test_an_element_that_has_moved_is_tapped_where_it_is() -> None:
    memory = Graph()
    for line in ("tap 50 50", "tap 50 950"):
        memory.see("state", "Shop", (Offer("button", ("kind",), line),))
    (known,) = memory.states["state"].actions.values()
    assert known.line == "tap 50 950"
