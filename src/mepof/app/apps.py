"""Apps: what a scenario exercises. On a plain Linux guest that is a program with a list of named
actions, described by a file under ``apps/``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from mepof.errors import InputError

_DIRECTORY = Path(__file__).with_name("apps")


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


def app_names() -> tuple[str, ...]:
    """The apps of a plain Linux guest."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))


def load_app(name: str) -> App:
    """The app of that name.

    Raises:
        InputError: there is none.
    """
    path = _DIRECTORY / f"{name}.toml"
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
