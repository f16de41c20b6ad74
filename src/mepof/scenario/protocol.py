"""Scenarios: the policies that pick the actions of a device that is profiled."""

from __future__ import annotations

from typing import Protocol

from mepof.app.apps import Action, App
from mepof.errors import InputError
from mepof.registry import Registry


class Scenario(Protocol):
    """A policy that picks actions."""

    #: The user works at the device's console instead.
    interactive: bool

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        """The actions of one run, in order.

        Args:
            count: number of actions, for policies that do not determine it.
            seed: of the policy's random choice.
            scripts: texts of the files that the program names after the apps.

        Raises:
            InputError: the apps or scripts do not fit the policy.
        """


def every_action(apps: tuple[App, ...]) -> tuple[Action, ...]:
    """The actions of all apps, in their order.

    Raises:
        InputError: there is none; the profile would be that of an idle kernel.
    """
    actions = tuple(action for app in apps for action in app.actions)
    if not actions:
        raise InputError("the scenario has no app to exercise", "name an app, such as kbench")
    return actions


SCENARIOS: Registry[Scenario] = Registry("mepof.scenario", "SCENARIO", "scenario")
