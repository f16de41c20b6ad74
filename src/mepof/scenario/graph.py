"""What is known about the screens of an app: which there are, what they offer, where that leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mepof.document import Document
from mepof.scenario.screen import BACK, Offer

#: Where an action leads that leaves the app, crashes it, or makes it hang.
OUTSIDE, CRASH, ANR = "outside", "crash", "anr"
#: The action that is there on every screen.
RESTART = "restart"


class Known(BaseModel):
    """What is known about an action of a screen: what it is, and how often it led where."""

    model_config = ConfigDict(extra="forbid")

    kinds: tuple[str, ...]
    line: str
    ends: dict[str, int] = Field(default_factory=dict)

    @property
    def end(self) -> str | None:
        """Where it has always led; None if that is not known."""
        return next(iter(self.ends)) if len(self.ends) == 1 else None

    @property
    def usual_end(self) -> str | None:
        """Where it led most often; None if it was never tried."""
        return max(self.ends, key=lambda end: self.ends[end], default=None)


class State(BaseModel):
    """A screen: how often it was seen, and its actions in their order.

    Attributes:
        tried, found: how many of them were tried, and how many of these led to a state that was
            new.
    """

    model_config = ConfigDict(extra="forbid")

    title: str
    seen: int = 0
    tried: int = 0
    found: int = 0
    actions: dict[str, Known] = Field(default_factory=dict)


class Graph(BaseModel):
    """The screens of one app, by their states.

    Attributes:
        start: where the app begins.
        kinds: of actions; how many different ones were tried, and how many of them led to a
            screen that was new.
    """

    model_config = ConfigDict(extra="forbid")

    start: str | None = None
    states: dict[str, State] = Field(default_factory=dict)
    kinds: dict[str, tuple[int, int]] = Field(default_factory=dict)

    def see(self, state: str, title: str, offers: tuple[Offer, ...]) -> None:
        """Note a screen that is shown."""
        shown = self.states.setdefault(state, State(title=title))
        shown.seen += 1
        for offer in offers:
            known = shown.actions.setdefault(offer.key, Known(kinds=offer.kinds, line=offer.line))
            known.line = offer.line  # the same element may be elsewhere on the screen now

    def ended(self, state: str, key: str, end: str, new: bool) -> None:
        """Note where an action led.

        Args:
            new: it led to a screen that was not known before.
        """
        shown = self.states[state]
        known = shown.actions[key]
        if not known.ends:
            shown.tried, shown.found = shown.tried + 1, shown.found + new
            for kind in known.kinds:
                tried, found = self.kinds.get(kind, (0, 0))
                self.kinds[kind] = (tried + 1, found + new)
        known.ends[end] = known.ends.get(end, 0) + 1

    def expected(self, trail: Sequence[str], key: str) -> str | None:
        """Where an action will probably lead; None if that is not known."""
        if key == BACK and len(trail) > 1:
            return trail[-2]
        return self.start if key == RESTART else self.states[trail[-1]].actions[key].usual_end

    def untried(self, state: str) -> Iterator[str]:
        """Actions of a screen that were never tried, in their order."""
        shown = self.states.get(state)
        for key, known in shown.actions.items() if shown else ():
            if not known.ends:
                yield key

    def routes(self, trail: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The shortest way to every state that is known to be reachable: its actions.

        ``BACK`` leads along the trail. Other actions that have led to several states are part of a
        way to what nothing else leads to.

        Args:
            trail: the states that ``BACK`` would show, the one that is shown last.
        """
        starts = [(state, (BACK,) * back) for back, state in enumerate(reversed(trail))]
        if self.start is not None:
            starts.append((self.start, (RESTART,)))
        sure = self._spread(starts, sure=True)
        return self._spread(list(sure.items()), sure=False)

    def _spread(
        self, starts: list[tuple[str, tuple[str, ...]]], sure: bool
    ) -> dict[str, tuple[str, ...]]:
        """What can be reached from states to which ways are known."""
        found: dict[str, tuple[str, ...]] = {}
        # The number keeps those of one length in their order.
        waiting = [(len(way), number, state, way) for number, (state, way) in enumerate(starts)]
        heapify(waiting)
        number = len(waiting)
        while waiting:
            length, _, state, way = heappop(waiting)
            if state in found or state not in self.states:
                continue
            found[state] = way
            for key, known in self.states[state].actions.items():
                end = known.end if sure else known.usual_end
                if end is not None and end not in found and key != BACK:
                    number += 1
                    heappush(waiting, (length + 1, number, end, (*way, key)))
        return found


class Memory(Document):
    """What runs have learned about apps, by package."""

    file: ClassVar[str] = "memory.json"

    apps: dict[str, Graph] = Field(default_factory=dict)
