"""``manual``: the user works at the device's console, and leaves its shell when done."""

from __future__ import annotations

from mepof.app.apps import Action
from mepof.scenario.protocol import Argument, Part


class Manual:
    """It picks no action: what the user does is the workload."""

    interactive = True
    argument: Argument = "none"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        return ()


SCENARIO = Manual()
