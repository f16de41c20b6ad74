"""A scenario that drives apps of a phone while its kernel is profiled, for a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mepof.app.android import AndroidApps
from mepof.device.shell import Shell
from mepof.errors import InputError
from mepof.scenario.driving import ROUTE, Budget, Drive, Screens
from mepof.scenario.protocol import Scenario
from mepof.scenario.system import System


@dataclass
class Driver:
    """Drives the apps of a statement, once.

    Attributes:
        given: text of the file behind the apps' colon.
        weights: behind each app's colon.
    """

    scenario: Scenario
    apps: Sequence[AndroidApps]
    seed: int
    given: str | None
    weights: Sequence[float]
    note: Callable[[str], None]
    progress: Callable[[int, str], None]
    screens: Screens | None = field(default=None, init=False)

    def drive(self, shell: Shell) -> None:
        """Drive all apps over a phone's shell.

        Raises:
            InputError: the phone does not have them.
            WorkError: none of them started.
        """
        system = System(shell)
        budgets = [
            Budget(app, weight * listed.seconds_of(app), app.actions)
            for listed, weight in zip(self.apps, self.weights, strict=True)
            for app in listed.android
        ]
        for budget in budgets:
            system.check_installed(budget.app)
        drive = Drive(system, tuple(budgets), self.seed, self.given, self.note, self.progress)
        self.screens = self.scenario.drive(drive)

    def write(self, directory: Path) -> Screens | None:
        """Write what was done, the script that does it again, and what was learned."""
        done = self.screens
        if done is not None:
            done.write(directory)
            if done.route:
                (directory / ROUTE).write_text("\n".join(done.route) + "\n", encoding="utf-8")
            if done.memory is not None:
                done.memory.write(directory)
        return done


def only_given(texts: Sequence[str | None]) -> str | None:
    """The one file that a scenario reads for all apps of a phone.

    Raises:
        InputError: there are several.
    """
    given = [text for text in texts if text is not None]
    if len(given) > 1:
        raise InputError(
            "a scenario reads one file for all apps of a phone",
            "list the apps in one description",
        )
    return given[0] if given else None
