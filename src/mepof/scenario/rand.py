"""``rand``: actions drawn at random, with replacement, from all apps' actions.

A program gives an app a weight after a colon, ``kbench:3;sqlite:1``: the app is drawn in that
proportion, and then one of its actions.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from mepof.app.apps import Action
from mepof.scenario.protocol import Argument, Part, every_action


class Rand:
    """A random draw that depends on the seed alone."""

    interactive = False
    argument: Argument = "weight"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        actions = every_action(parts)
        if all(part.weight is None for part in parts):
            return tuple(Random(seed).choices(actions, k=count))
        shares = [
            float(Fraction(1 if part.weight is None else part.weight) / len(part.app.actions))
            for part in parts
            for _ in part.app.actions
        ]
        return tuple(Random(seed).choices(actions, shares, k=count))


SCENARIO = Rand()
