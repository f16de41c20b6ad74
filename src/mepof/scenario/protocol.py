"""Scenarios: the policies that pick what a device is made to do while it is profiled."""

from __future__ import annotations

from typing import Protocol

from mepof.app.apps import Action, App
from mepof.errors import InputError
from mepof.registry import Registry


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
