"""``script``: the actions that a file lists, one on each line; ``#`` begins a comment.

A program names the file after the app and a colon: ``kbench:./actions.txt``. An app without
one runs all its actions, in their order. For apps of a phone the lines are touches and keys, as
:mod:`mepof.scenario.system` performs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mepof.app.apps import Action
from mepof.errors import InputError
from mepof.scenario.driving import Drive, Driven, Ended, Screens
from mepof.scenario.protocol import Argument, Part
from mepof.scenario.system import check_line


def read_script(path: Path) -> str:
    """Read a script.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the script {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the script {path} is not UTF-8 text") from error


class Script:
    """A fixed list of actions."""

    interactive = False
    argument: Argument = "script"

    def pick(self, parts: tuple[Part, ...], count: int, seed: int) -> tuple[Action, ...]:
        actions = tuple(action for part in parts for action in _listed(part))
        if not actions:
            raise InputError("the script lists no actions")
        return actions

    def check_given(self, text: str | None) -> None:
        read_touches(text)

    def drive(self, drive: Drive) -> Screens:
        lines = read_touches(drive.given)
        system = drive.system
        throttle = drive.apps[0].app.throttle / 1000
        until = system.now() + sum(budget.seconds for budget in drive.apps)
        done = 0
        for done, line in enumerate(lines):
            if system.now() >= until:
                break
            drive.progress(done, line)
            system.perform(line)
            if not line.startswith("wait"):
                system.pause(throttle)
        else:
            done = len(lines)
        ended: Ended = "actions" if done == len(lines) else "time"
        for budget in drive.apps:
            system.stop(budget.app)
        package = "+".join(budget.app.package for budget in drive.apps)
        return Screens(apps=(Driven(package=package, actions=done, ended=ended),), route=lines)


def read_touches(text: str | None) -> tuple[str, ...]:
    """The lines of a script for apps of a phone.

    Raises:
        InputError: there is none, or one is wrong.
    """
    found: list[str] = []
    for number, line in _lines(text):
        try:
            check_line(line)
        except ValueError as error:
            raise InputError(f"line {number} of the script: {error}") from error
        found.append(line)
    if not found:
        raise InputError("the script lists no actions")
    return tuple(found)


def _listed(part: Part) -> tuple[Action, ...]:
    """The actions of an app that its file lists; all of them without a file."""
    if part.script is None:
        return part.app.actions
    return tuple(part.app.action(name) for _, name in _lines(part.script))


def _lines(text: str | None) -> Iterator[tuple[int, str]]:
    """What each line says before its comment, with its number."""
    for number, line in enumerate((text or "").splitlines(), 1):
        said = line.partition("#")[0].strip()
        if said:
            yield number, said


SCENARIO = Script()
