"""``rand``: actions drawn at random, with replacement, from all apps' actions.

A program gives an app a weight after a colon, ``kbench:3;sqlite:1``: the app is drawn in that
proportion, and then one of its actions. Apps of a phone are touched by Android's ``monkey``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random

from mepof.app.apps import Action
from mepof.errors import InputError, WorkError
from mepof.scenario.driving import Budget, Drive, Driven, Ended, Screens
from mepof.scenario.exploring import check_started
from mepof.scenario.protocol import Argument, Part, every_action
from mepof.scenario.system import System

# Of AOSP's Monkey.java and the events that it sends.
_CRASH = re.compile(r"^// CRASH: (\S+)", re.M)
_ANR = re.compile(r"^// NOT RESPONDING: (\S+)", re.M)
_INJECTED = re.compile(r"^Events injected: (\d+)", re.M)
_TOUCH = re.compile(r"^:Sending \w+ \(ACTION_(?:DOWN|UP)\)", re.M)
# Seconds between touches without a throttle, about; and for monkey to start.
_FASTEST = 0.05
_MORE = 60


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

    def check_given(self, text: str | None) -> None:
        pass

    def drive(self, drive: Drive) -> Screens:
        driven: list[Driven] = []
        for number, budget in enumerate(drive.apps):
            drive.progress(number, budget.app.package)
            driven.append(_monkey(drive.system, budget, drive.seed + number))
            drive.note(str(driven[-1]))
        check_started(drive, driven)
        return Screens(apps=tuple(driven))


def _monkey(system: System, budget: Budget, seed: int) -> Driven:
    """Let ``monkey`` touch an app; a touch is two of its events, down and up, and a throttle."""
    app = budget.app
    paced = 2 * budget.seconds / max(app.throttle / 1000, _FASTEST)
    events = int(paced) if budget.actions is None else 2 * budget.actions
    done = system.run(
        *("timeout", f"{budget.seconds:.0f}", "monkey", "-p", app.package, "-s", str(seed)),
        *("--throttle", str(app.throttle), "--pct-syskeys", "0"),
        *("--ignore-crashes", "--ignore-timeouts", "--ignore-security-exceptions"),
        *("-v", str(events)),
        seconds=budget.seconds + _MORE,
    )
    system.stop(app)
    if "No activities found" in done.output:
        raise InputError(f"the launcher of {system.name} starts nothing of `{app.package}`")
    crashes = tuple(_CRASH.findall(done.output))
    anrs = tuple(_ANR.findall(done.output))
    injected = _INJECTED.search(done.output)
    # What ends at the limit does not say how many there were.
    count = int(injected[1]) if injected else len(_TOUCH.findall(done.output))
    if not count and not crashes and not anrs:
        raise WorkError(f"monkey did nothing on {system.name}: {done.output.strip()[-80:]}")
    ended: Ended = "time" if injected is None else "actions"
    return Driven(
        package=app.package,
        actions=-(-count // 2),
        ended=ended if count else "did not start",
        crashes=crashes,
        anrs=anrs,
    )


SCENARIO = Rand()
