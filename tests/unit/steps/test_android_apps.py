"""Profiles are collected while apps of a phone are driven."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from writers.android_app import generated
from writers.android_phone import AndroidPhone

from mepof.device import agent
from mepof.device.protocol import DEVICES, Outcome, Session
from mepof.errors import InputError
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.scenario import driver
from mepof.scenario.system import System
from mepof.steps import app_programs, profile_collect

from .room import FakeDevice, Room, register, well

APP = generated(20, 1)
LIST = f"""\
title = "two apps"
seconds = 600

[[android]]
package = "{APP.package}"
activity = ".Main"
actions = 40
"""
PARAMS: dict[str, Json] = {
    "arch": "x86-64",
    "device": "phone",
    "seed": 1,
    "algorithm": "pgo",
    "scenario": "trav",
    "actions": 3,
}


class FakePhone(FakeDevice):
    """A device with a system, in which a played phone's apps are driven."""

    def __init__(self) -> None:
        super().__init__(well)
        self.phone = AndroidPhone.of(APP)

    def system(self) -> str:
        return "Android"

    def boot(self, session: Session, *rest: Any) -> Outcome:
        assert session.interlude is not None
        # After the counters were reset, and before they are read.
        assert isinstance(session.requests[session.interlude.after - 1], agent.Put)
        assert isinstance(session.requests[session.interlude.after], agent.Get)
        session.interlude.act(self.phone)
        return super().boot(session, *rest)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakePhone:
    made = FakePhone()
    register(monkeypatch, DEVICES, made)
    phone = made.phone
    monkeypatch.setattr(driver, "System", lambda shell: System(shell, phone.pause, phone.now))
    return made


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "apps.toml").write_text(LIST)
    return Room(tmp_path)


def collect(room: Room, scenario: str, **more: Path) -> Path:
    params: dict[str, Json] = {**PARAMS, "scenario": scenario, "apps": [{}]}
    given = {"kernel": room.root, "guest": room.root, "apps__0__file": room.root / "apps.toml"}
    context = room.context("profile-collect", params, **given, **more)
    profile_collect.BODY.run(context)
    return context.output


def step(room: Room, scenario: str, *names: str, **more: Input) -> Step:
    files = {"apps.0.file": HostInput(str(room.root / "apps.toml"))}
    inputs: dict[str, Input] = {"kernel": StepInput("build"), "guest": StepInput("guest"), **files}
    apps: list[Json] = [{}]
    apps += [{"name": name} for name in names]
    given = {name.replace("__", "."): each for name, each in more.items()}
    return Step(
        "c", "profile-collect", {**PARAMS, "scenario": scenario, "apps": apps}, {**inputs, **given}
    )


def written(output: Path, name: str) -> Any:
    return json.loads((output / name).read_text())


@pytest.mark.parametrize("scenario", ["rand", "trav", "learned"])
def test_the_apps_are_driven_between_reset_and_reading(
    room: Room, device: FakePhone, scenario: str
) -> None:
    output = collect(room, scenario)
    assert (output / "raw0").read_bytes() == b"raw profile"
    known = written(output, "collection.json")
    assert known["apps"] == ["two apps"]
    [driven] = known["screens"]
    assert (driven["package"], driven["actions"], driven["ended"]) == (APP.package, 40, "actions")
    assert (output / "route.txt").exists() == (scenario != "rand")
    assert (output / "memory.json").exists() == (scenario != "rand")


def test_a_route_and_a_memory_serve_the_next_collection(room: Room, device: FakePhone) -> None:
    output = collect(room, "learned")
    first = list(device.phone.shown[APP.package])
    for name in ("route.txt", "memory.json"):
        (room.root / name).write_bytes((output / name).read_bytes())
    device.phone = AndroidPhone.of(APP)
    collect(room, "script", apps__0__script=room.root / "route.txt")
    assert device.phone.shown[APP.package] == first
    device.phone = AndroidPhone.of(APP)
    collect(room, "learned", apps__0__script=room.root / "memory.json")
    known = written(output, "memory.json")["apps"][APP.package]
    assert sum(state["seen"] for state in known["states"].values()) > len(first)


def test_programs_beside_apps_of_a_phone_are_refused(room: Room, device: FakePhone) -> None:
    with pytest.raises(InputError, match="cannot be trained by one statement"):
        profile_collect.BODY.check(step(room, "trav", "kbench"))


def test_a_device_without_apps_is_refused(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, DEVICES, FakeDevice(well))
    with pytest.raises(InputError, match=rf"device phone has no apps such as {APP.package}"):
        profile_collect.BODY.check(step(room, "trav"))


@pytest.mark.parametrize(
    ("scenario", "text", "why"),
    [
        ("script", "tap here", "line 1 of the script: `tap` takes 2 words"),
        ("learned", "[]", "not the memory of an earlier run"),
    ],
)
def test_a_wrong_file_is_refused_before_a_kernel_is_built(
    room: Room, device: FakePhone, scenario: str, text: str, why: str
) -> None:
    file = room.root / "given"
    file.write_text(text)
    asked = step(room, scenario, **{"apps.0.script": HostInput(str(file))})
    with pytest.raises(InputError, match=why):
        profile_collect.BODY.check(asked)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = 'x'\nandroid = []\n", "lists no app"),
        ("title = 'x'\n[[android]]\npackage = 'mail'\n", r":3: `android\[0\]\.package` must"),
        ("title = 'x'\n[[android]]\npackage = 'a.b'\nweigth = 1\n", "unknown key `weigth`"),
        ("title = 'x'\n[[android]]\npackage = 'a.b'\nseconds = 0\n", "greater than 0"),
        ("title = 'x'\n" + "[[android]]\npackage = 'a.b'\n" * 2, "`a.b` occurs twice"),
        ("[[android]\n", "is not TOML"),
    ],
)
def test_a_wrong_list_is_refused(room: Room, device: FakePhone, text: str, why: str) -> None:
    (room.root / "apps.toml").write_text(text)
    with pytest.raises(InputError, match=why):
        profile_collect.BODY.check(step(room, "trav"))


def test_apps_of_a_phone_add_nothing_to_a_guest(room: Room) -> None:
    asked: Mapping[str, Json] = {"arch": "x86-64"}
    described = room.root / "apps.toml"
    given = Step("a", "app-programs", asked, {"app": HostInput(str(described))})
    app_programs.BODY.check(given)
    assert app_programs.BODY.identity(given) == {}
    context = room.context("app-programs", asked, app=described)
    app_programs.BODY.run(context)
    assert b"TRAILER!!!" in (context.output / "archive.cpio").read_bytes()
