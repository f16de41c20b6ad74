"""``trav``: every action once.

Of programs, in the order of the files. On the screens of a phone's app, depth first: the first
action of the screen that was never tried; if there is none, the latest screen that has one, over
known screens or by a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mepof.app.apps import Action
from mepof.scenario.driving import Drive, Screens
from mepof.scenario.exploring import explore
from mepof.scenario.graph import Graph, Memory
from mepof.scenario.protocol import Argument, Part, every_action

# A screen may no longer be where it was.
_ATTEMPTS = 10


class DepthFirst:
    """The strategy on screens."""

    def __init__(self) -> None:
        self._aimed: Counter[tuple[str, str]] = Counter()

    def choose(
        self, graph: Graph, seen: Mapping[str, int], trail: Sequence[str]
    ) -> tuple[str, ...]:
        fresh = next(graph.untried(trail[-1]), None)
        if fresh is not None:
            return (fresh,)
        routes = graph.routes(trail)
        for state in reversed(list(seen)):
            fresh = next(graph.untried(state), None)
            if fresh is not None and state in routes and self._aimed[state, fresh] < _ATTEMPTS:
                self._aimed[state, fresh] += 1
                return (*routes[state], fresh)
        return ()


class Trav:
    """A complete traversal, the same in every run."""

    interactive = False
    argument: Argument = "none"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        return every_action(parts)

    def check_given(self, text: str | None) -> None:
        pass

    def drive(self, drive: Drive) -> Screens:
        return explore(drive, Memory(), lambda seed: DepthFirst())


SCENARIO = Trav()
