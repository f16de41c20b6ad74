"""``trav``: every action of every app once, in the order of the files."""

from __future__ import annotations

from mepof.app.apps import Action, App
from mepof.scenario.protocol import every_action


class Trav:
    """A complete traversal, the same in every run."""

    interactive = False

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        return every_action(apps)


SCENARIO = Trav()
