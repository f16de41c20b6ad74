"""Driving apps of a phone: what a scenario is given for it, and the document of what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from mepof.app.android import AndroidApp
from mepof.document import Document
from mepof.scenario.graph import Memory
from mepof.scenario.system import System

ROUTE = "route.txt"

Ended = Literal["complete", "actions", "time", "did not start"]


@dataclass(frozen=True)
class Budget:
    """How long an app is driven.

    Attributes:
        actions: None for any number.
    """

    app: AndroidApp
    seconds: float
    actions: int | None = None


@dataclass(frozen=True)
class Drive:
    """What a scenario drives.

    Attributes:
        given: text of the file behind the apps' colon.
        note: called with a line for the user.
        progress: called with the number of actions so far, and what is done.
    """

    system: System
    apps: tuple[Budget, ...]
    seed: int
    given: str | None
    note: Callable[[str], None]
    progress: Callable[[int, str], None]


class Driven(BaseModel):
    """What was done to an app.

    Attributes:
        actions: that were performed, and for the scenarios that look at screens also
        states: that were seen in this run,
        transitions: different pairs of states between which an action led,
        tried, offered: actions of these states, and
        reached: after how many actions each state was seen for the first time.
        crashes, anrs: where the app crashed and did not respond.
        restarts: of the app, beyond its first start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str
    actions: int
    ended: Ended
    states: int | None = None
    transitions: int | None = None
    tried: int | None = None
    offered: int | None = None
    reached: tuple[int, ...] = ()
    crashes: tuple[str, ...] = ()
    anrs: tuple[str, ...] = ()
    restarts: int = 0

    def __str__(self) -> str:
        return f"{self.package}: {self.summary}"

    @property
    def summary(self) -> str:
        """What was done, in one line."""
        words = [f"{self.actions} actions"]
        if self.states is not None:
            words.append(
                f"{self.states} states, {self.transitions} transitions, "
                f"{self.tried} of {self.offered} actions of these states tried"
            )
        words += [f"crash {why}" for why in self.crashes] + [f"ANR {why}" for why in self.anrs]
        how = {"complete": "", "actions": "", "time": "time is up", "did not start": self.ended}
        return ", ".join([*words, *filter(None, (how[self.ended],))])


class Screens(Document):
    """What a scenario did to the apps of a phone.

    Attributes:
        route: the script that does it again, unless the seed does.
        memory: what was learned, by scenarios that explore.
    """

    file: ClassVar[str] = "screens.json"

    apps: tuple[Driven, ...]
    route: tuple[str, ...] = ()
    memory: Memory | None = Field(default=None, exclude=True)
