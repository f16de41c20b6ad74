"""``manual``: the user works at the device's console, and leaves its shell when done.

A phone has no console: the user touches its screen, and what they touch becomes a script.
"""

from __future__ import annotations

from mepof.app.apps import Action
from mepof.errors import WorkError
from mepof.scenario.driving import Budget, Drive, Driven, Screens
from mepof.scenario.protocol import Argument, Part
from mepof.scenario.touches import read_range, read_touches

_MORE = 30


class Manual:
    """It picks no action: what the user does is the workload."""

    interactive = True
    argument: Argument = "none"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        return ()

    def check_given(self, text: str | None) -> None:
        pass

    def drive(self, drive: Drive) -> Screens:
        driven: list[Driven] = []
        route: list[str] = []
        for budget in drive.apps:
            lines = _recorded(drive, budget)
            route += [f"launch {budget.app.component or budget.app.package}", *lines]
            touches = sum(not line.startswith("wait") for line in lines)
            driven.append(Driven(package=budget.app.package, actions=touches, ended="time"))
            drive.note(str(driven[-1]))
        if not any(app.actions for app in driven):
            raise WorkError(
                "nobody touched the screen", "see whether `adb shell getevent -lp` lists it"
            )
        return Screens(apps=tuple(driven), route=tuple(route))


def _recorded(drive: Drive, budget: Budget) -> tuple[str, ...]:
    """What the user touches until the app's time is up, as lines of a script."""
    system, app = drive.system, budget.app
    limits = read_range(system.run("getevent", "-lp").output, system.name)
    system.launch(app)
    drive.note(
        f"use {app.package} on {system.name} for {budget.seconds:g} s; what you touch is recorded"
    )
    drive.progress(0, app.package)
    done = system.run(
        *("timeout", f"{budget.seconds:.0f}", "getevent", "-lt"), seconds=budget.seconds + _MORE
    )
    system.stop(app)
    return read_touches(done.output, limits, system.size())


SCENARIO = Manual()
