"""``learned``: actions that probably lead to what was seen least.

An action that was never tried is judged by what actions of its kind, and others of its screen, have
led to. What a run has learned is a file that the next one may be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from mepof.app.apps import Action
from mepof.scenario.driving import Drive, Screens
from mepof.scenario.exploring import explore, read_memory
from mepof.scenario.graph import Graph, State
from mepof.scenario.protocol import Argument, Part, every_action

# How many observations a more general estimate weighs as much as.
_KINDS_WEIGHT = 2.0
_SCREEN_WEIGHT = 4.0
# What a state that was seen in this run is worth, beside one that was not.
_SEEN_WORTH = 0.001


class LeastSeen:
    """The strategy on screens: the largest expectation of something new for each action that it
    takes to get it.

    Args:
        seed: decides between actions of equal worth.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def choose(
        self, graph: Graph, seen: Mapping[str, int], trail: Sequence[str]
    ) -> tuple[str, ...]:
        best = 0.0
        chosen: list[tuple[str, ...]] = []
        for state, way in graph.routes(trail).items():
            for key, worth in _worths(graph, seen, graph.states[state]):
                each = worth / (len(way) + 1)
                if each > best:
                    best, chosen = each, []
                if each == best > 0:
                    chosen.append((*way, key))
        return self._random.choice(chosen) if chosen else ()


def _worths(graph: Graph, seen: Mapping[str, int], shown: State) -> Iterator[tuple[str, float]]:
    """The actions of a screen, and what each is expected to show."""
    estimates: dict[tuple[str, ...], float] = {}
    for key, known in shown.actions.items():
        if known.ends:
            total = sum(known.ends.values())
            ends = ((end, count) for end, count in known.ends.items() if end in graph.states)
            yield key, sum(count / total * _worth_of(seen.get(end, 0)) for end, count in ends)
        else:
            if known.kinds not in estimates:
                estimates[known.kinds] = expectation(graph, shown, known.kinds)
            yield key, estimates[known.kinds]


def _worth_of(times: int) -> float:
    return _SEEN_WORTH / (1 + times) if times else 1.0


def expectation(graph: Graph, shown: State, kinds: tuple[str, ...]) -> float:
    """The probability that an action of a screen which was never tried leads to a new one.

    A Beta estimate of each kind, whose prior is the estimate of the kind above it, and then of the
    screen.

    Args:
        kinds: of the action, the narrowest first.
    """
    estimate = 0.5
    for kind in reversed(kinds):
        tried, found = graph.kinds.get(kind, (0, 0))
        estimate = (found + _KINDS_WEIGHT * estimate) / (tried + _KINDS_WEIGHT)
    return (shown.found + _SCREEN_WEIGHT * estimate) / (shown.tried + _SCREEN_WEIGHT)


class Learned:
    """What runs least, and on screens what was seen least."""

    interactive = False
    argument: Argument = "memory"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        """Programs have no screens: every action runs as often as any other, in drawn orders."""
        actions, random = every_action(parts), Random(seed)
        picked: list[Action] = []
        while len(picked) < count:
            picked += random.sample(actions, len(actions))
        return tuple(picked[:count])

    def check_given(self, text: str | None) -> None:
        read_memory(text)

    def drive(self, drive: Drive) -> Screens:
        return explore(drive, read_memory(drive.given), LeastSeen)


SCENARIO = Learned()
