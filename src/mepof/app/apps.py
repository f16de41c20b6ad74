"""Apps: what a scenario exercises.

On a plain Linux guest that is a program with a list of named actions, described by a file under
``apps/``.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from mepof.described import Described, Named, Word, check_distinct, nearest
from mepof.errors import InputError
from mepof.registry import DescribedRegistry


class Action(Described):
    """A command with a time limit, which a scenario can pick.

    Attributes:
        seconds: the limit.
        includes: groups of cases (G4's metrics) that it runs among other things.
    """

    name: Word
    argv: tuple[str, ...] = Field(min_length=1)
    seconds: float = Field(gt=0)
    # Left out of repr(), which steps hash: it does not change what runs.
    includes: tuple[str, ...] = Field(default=(), repr=False)


class App(Named):
    """A workload with named actions."""

    title: str
    actions: tuple[Action, ...] = Field(alias="action")

    @field_validator("actions")
    @classmethod
    def _names_are_distinct(cls, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        check_distinct(action.name for action in actions)
        return actions

    def action(self, name: str) -> Action:
        """The action of that name.

        Raises:
            InputError: there is none.
        """
        for action in self.actions:
            if action.name == name:
                return action
        hint = nearest(name, [action.name for action in self.actions])
        raise InputError(f"app `{self.name}` has no action `{name}`", hint)


APPS = DescribedRegistry(Path(__file__).with_name("apps"), App, "app")


def app_names() -> tuple[str, ...]:
    """The apps of a plain Linux guest."""
    return APPS.names()


def load_app(name: str) -> App:
    """The app of that name.

    Raises:
        InputError: there is none, or its file is wrong.
    """
    return APPS.get(name)
