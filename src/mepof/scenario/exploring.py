"""Exploring an app by its screens: performs what a strategy chooses, and notes what it saw."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mepof.errors import InputError, WorkError
from mepof.scenario.driving import Budget, Drive, Driven, Ended, Screens
from mepof.scenario.graph import ANR, CRASH, OUTSIDE, RESTART, Graph, Memory
from mepof.scenario.screen import BACK, NotAScreen, Screen
from mepof.scenario.system import DidNotStart, System

_STARTS = 3
_DIALOGS = 5


class Strategy(Protocol):
    """A policy over states and actions."""

    def choose(
        self, graph: Graph, seen: Mapping[str, int], trail: Sequence[str]
    ) -> tuple[str, ...]:
        """The next actions; the strategy is asked again when they are done, or when one leads
        elsewhere than it usually does.

        Args:
            graph: all that is known of the app, from earlier runs as well.
            seen: how often each state was seen in this run.
            trail: the states that ``BACK`` would show, the one that is shown last.

        Returns:
            Actions, the first of this state or ``RESTART``; none if nothing is left to explore.
        """


def explore(drive: Drive, memory: Memory, strategy_of: Callable[[int], Strategy]) -> Screens:
    """Explore each app for its budget.

    Args:
        memory: of earlier runs, to which this one is added.
        strategy_of: makes the strategy for an app, from a seed.

    Raises:
        InputError: the phone has no such app.
        WorkError: none of the apps started.
    """
    driven: list[Driven] = []
    route: list[str] = []
    done = 0
    for number, budget in enumerate(drive.apps):
        graph = memory.apps.setdefault(budget.app.package, Graph())

        def progress(count: int, done: int = done, budget: Budget = budget) -> None:
            drive.progress(done + count, budget.app.package)

        explorer = _Explorer(drive.system, budget, graph, progress)
        driven.append(explorer.run(strategy_of(drive.seed + number)))
        route += explorer.route
        done += driven[-1].actions
        drive.note(str(driven[-1]))
        drive.system.stop(budget.app)
    check_started(drive, driven)
    return Screens(apps=tuple(driven), route=tuple(route), memory=memory)


def check_started(drive: Drive, driven: list[Driven]) -> None:
    """Refuse a run in which nothing was done.

    Raises:
        WorkError: no app started.
    """
    if all(app.ended == "did not start" for app in driven):
        crashes = [why for app in driven for why in (*app.crashes, *app.anrs)]
        raise WorkError(
            f"no app started on {drive.system.name}: {'; '.join(crashes) or 'no screen'}",
            "start it by hand, and read `adb logcat -b crash`",
        )


@dataclass
class _Explorer:
    """One app in one run."""

    system: System
    budget: Budget
    graph: Graph
    progress: Callable[[int], None]
    trail: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    reached: list[int] = field(default_factory=list)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    tried: set[tuple[str, str]] = field(default_factory=set)
    crashes: list[str] = field(default_factory=list)
    anrs: list[str] = field(default_factory=list)
    route: list[str] = field(default_factory=list)
    done: int = 0
    restarts: int = -1

    def run(self, strategy: Strategy) -> Driven:
        """Explore until nothing is left or the budget is used up."""
        until = self.system.now() + self.budget.seconds
        try:
            ended = self._run(strategy, until)
        except DidNotStart as error:
            if not (self.crashes or self.anrs):
                self.crashes.append(str(error))
            ended = "time" if self.seen else "did not start"
        states = [self.graph.states[state] for state in self.seen]
        return Driven(
            package=self.budget.app.package,
            actions=self.done,
            ended=ended,
            states=len(self.seen),
            transitions=len(self.pairs),
            tried=len(self.tried),
            offered=sum(len(state.actions) for state in states),
            reached=tuple(self.reached),
            crashes=tuple(self.crashes),
            anrs=tuple(self.anrs),
            restarts=max(self.restarts, 0),
        )

    def _run(self, strategy: Strategy, until: float) -> Ended:
        self._restarted()
        ahead: deque[str] = deque()
        while True:
            if self._used_up():
                return "actions"
            if self.system.now() >= until:
                return "time"
            ahead = ahead or deque(strategy.choose(self.graph, self.seen, self.trail))
            if not ahead:
                return "complete"
            key = ahead.popleft()
            expected = self.graph.expected(self.trail, key)
            if key == RESTART:
                self._restarted()
            else:
                self._performed(key)
            if self.trail[-1] != expected:
                ahead.clear()

    def _performed(self, key: str) -> None:
        """Perform an action; if it ends the app, start that again."""
        here = self.trail[-1]
        self._count()
        self._do(self.graph.states[here].actions[key].line)
        self.tried.add((here, key))
        when = f"after `{key}` on `{self.graph.states[here].title}`"
        screen, end = self._looked(when)
        if screen is not None and end is None:
            new = screen.state not in self.graph.states
            self._see(screen)
            self.graph.ended(here, key, screen.state, new)
            self.pairs.add((here, screen.state))
            self._follow(screen.state, key)
            return
        if end == OUTSIDE and key != BACK and not self.system.is_running(self.budget.app):
            end = CRASH
            self.crashes.append(f"{when}: its process is gone")
        self.graph.ended(here, key, end or OUTSIDE, False)
        if not self._used_up():
            self._restarted()

    def _follow(self, state: str, key: str) -> None:
        """Keep the trail as Android's back stack is."""
        if key == BACK and state in self.trail:
            del self.trail[len(self.trail) - self.trail[::-1].index(state) :]
        elif state != self.trail[-1]:
            self.trail.append(state)

    def _restarted(self) -> None:
        """Start the app.

        Raises:
            DidNotStart: it crashes or hangs, again and again.
        """
        app = self.budget.app
        why = "it shows no screen"
        for _ in range(_STARTS):
            self.restarts += 1
            if self.restarts:
                self._count()
            self.route.append(f"launch {app.component or app.package}")
            self.system.launch(app)
            self.system.pause(app.throttle / 1000)
            screen, end = self._looked("at its start")
            if screen is not None and end is None:
                self._see(screen)
                self.graph.start = screen.state
                self.trail = [screen.state]
                return
            why = f"{app.package} ended at its start ({end})"
        raise DidNotStart(why)

    def _used_up(self) -> bool:
        return self.budget.actions is not None and self.done >= self.budget.actions

    def _count(self) -> None:
        self.done += 1
        self.progress(self.done)

    def _see(self, screen: Screen) -> None:
        if screen.state not in self.seen:
            self.reached.append(self.done)
        self.seen[screen.state] = self.seen.get(screen.state, 0) + 1
        self.graph.see(screen.state, screen.title, screen.offers)

    def _do(self, line: str) -> None:
        self.route.append(line)
        self.system.perform(line)
        self.system.pause(self.budget.app.throttle / 1000)

    def _looked(self, when: str) -> tuple[Screen | None, str | None]:
        """The app's screen, after dialogs of the system were answered.

        Returns:
            The screen, None if it cannot be read, and how the app was left, None if it is there.
        """
        end: str | None = None
        for _ in range(_DIALOGS):
            try:
                screen = self.system.screen()
            except NotAScreen:
                return None, end or OUTSIDE
            if screen.dialog is None:
                own = screen.package == self.budget.app.package
                return screen, end or (None if own else OUTSIDE)
            if screen.dialog == "crash":
                end = CRASH
                self.crashes.append(f"{when}: {screen.title}")
            elif screen.dialog == "anr":
                end = ANR
                self.anrs.append(f"{when}: {screen.title}")
            self._do(screen.answer)
        return None, end or OUTSIDE


def read_memory(text: str | None) -> Memory:
    """What an earlier run has learned; nothing without one.

    Raises:
        InputError: the text is not that of a memory.
    """
    if text is None:
        return Memory()
    try:
        return Memory.model_validate_json(text)
    except ValueError as error:
        raise InputError(
            "the file after the apps' colon is not the memory of an earlier run",
            f"name the {Memory.file} of one",
        ) from error
