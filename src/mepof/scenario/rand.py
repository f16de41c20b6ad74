"""``rand``: actions drawn at random, with replacement, from all apps' actions."""

from __future__ import annotations

from random import Random

from mepof.app.apps import Action, App
from mepof.scenario.protocol import every_action


class Rand:
    """A random draw that depends on the seed alone."""

    interactive = False

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        return tuple(Random(seed).choices(every_action(apps), k=count))


SCENARIO = Rand()
