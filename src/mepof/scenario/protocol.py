"""Scenarios: the policies that pick what a device is made to do while it is profiled.

An app is what a scenario exercises; on a plain Linux guest it is a program with a list of
named actions, described by a file under ``apps/``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from mepof.errors import InputError
from mepof.registry import Registry

_APPS = Path(__file__).with_name("apps")


@dataclass(frozen=True)
class Action:
    """One thing that an app does: a command with a limit in seconds.

    Attributes:
        includes: groups of cases (G4's metrics) that it runs among other things.
    """

    name: str
    argv: tuple[str, ...]
    seconds: float
    # Not shown, for it does not change what a run of the action does.
    includes: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class App:
    """A workload with named actions."""

    name: str
    title: str
    actions: tuple[Action, ...]

    def action(self, name: str) -> Action:
        """The action of that name.

        Raises:
            InputError: there is none.
        """
        for action in self.actions:
            if action.name == name:
                return action
        near = get_close_matches(name, [a.name for a in self.actions], n=1)
        hint = f"did you mean `{near[0]}`?" if near else None
        raise InputError(f"app `{self.name}` has no action `{name}`", hint)


class Scenario(Protocol):
    """How the next action is picked."""

    #: The user acts, at the device's console.
    interactive: bool

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        """The actions of one run, in order.

        Args:
            count: how many, for policies that have no number of their own.
            seed: of the policy's random choice.
            scripts: texts of the files that the program named behind the apps.

        Raises:
            InputError: the apps or scripts do not fit the policy.
        """


def every_action(apps: tuple[App, ...]) -> tuple[Action, ...]:
    """The actions of all apps, in their order.

    Raises:
        InputError: there is none, so that a profile would be one of an idle kernel.
    """
    actions = tuple(action for app in apps for action in app.actions)
    if not actions:
        raise InputError("the scenario has no app to exercise", "name one, such as kbench")
    return actions


SCENARIOS: Registry[Scenario] = Registry("mepof.scenario", "SCENARIO", "scenario")


def app_names() -> tuple[str, ...]:
    """The apps of a plain Linux guest."""
    return tuple(sorted(path.stem for path in _APPS.glob("*.toml")))


def load_app(name: str) -> App:
    """The app of that name.

    Raises:
        InputError: there is none.
    """
    path = _APPS / f"{name}.toml"
    if name not in app_names():
        raise InputError(f"unknown app `{name}`", "known: " + ", ".join(app_names()))
    with path.open("rb") as file:
        described = tomllib.load(file)
    actions = tuple(
        Action(
            entry["name"],
            tuple(entry["argv"]),
            float(entry["seconds"]),
            tuple(entry.get("includes", ())),
        )
        for entry in described["action"]
    )
    return App(name, described["title"], actions)
