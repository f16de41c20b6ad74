"""``rand``: actions drawn at random, with replacement, from all apps' actions."""

from __future__ import annotations

from random import Random

from mepof.scenario.protocol import Action, App


class Rand:
    """The same seed draws the same actions."""

    interactive = False

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        every = [action for app in apps for action in app.actions]
        return tuple(Random(seed).choices(every, k=count)) if every else ()


SCENARIO = Rand()
