"""``trav``: every action of every app once, in the order of the files."""

from __future__ import annotations

from mepof.app.apps import Action
from mepof.scenario.protocol import Argument, Part, every_action


class Trav:
    """A complete traversal, the same in every run."""

    interactive = False
    argument: Argument = "none"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        return every_action(parts)


SCENARIO = Trav()
