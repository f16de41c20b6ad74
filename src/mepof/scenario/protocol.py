"""Scenarios: the policies that pick the actions of a device that is profiled."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from mepof.app.apps import Action, App
from mepof.errors import InputError
from mepof.registry import Registry
from mepof.scenario.driving import Drive, Screens

#: What a program may write behind an app and a colon.
Argument = Literal["none", "weight", "script", "memory"]


@dataclass(frozen=True)
class Part:
    """An app of a training, as the program names it.

    Attributes:
        weight: its share among the parts, for policies that draw; None if the program gives none.
        script: text of the file that lists its actions, for policies that read one; or of what
            was learned.
    """

    app: App
    weight: Fraction | None = None
    script: str | None = None


class Scenario(Protocol):
    """A policy that picks actions."""

    #: The user works at the device instead.
    interactive: bool
    argument: Argument

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        """The actions of one run, in order.

        Args:
            count: number of actions, for policies that do not determine it.
            seed: of the policy's random choice.

        Raises:
            InputError: the apps, weights or scripts do not fit the policy.
        """

    def check_given(self, text: str | None) -> None:
        """Refuse the file for apps of a phone, before a kernel is built.

        Args:
            text: None if the program names no file.

        Raises:
            InputError: it does not fit.
        """

    def drive(self, drive: Drive) -> Screens:
        """Drive apps of a phone, in which an action is what a screen offers.

        Raises:
            InputError: the phone has no such app, or the given file does not fit.
            WorkError: no app started.
        """


def every_action(parts: tuple[Part, ...]) -> tuple[Action, ...]:
    """The actions of all apps, in their order.

    Raises:
        InputError: there is none; the profile would be that of an idle kernel.
    """
    actions = tuple(action for part in parts for action in part.app.actions)
    if not actions:
        raise InputError("the scenario has no app to exercise", "name an app, such as kbench")
    return actions


SCENARIOS: Registry[Scenario] = Registry("mepof.scenario", "SCENARIO", "scenario", Scenario)
