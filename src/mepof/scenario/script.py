"""``script``: the actions that a file lists, one on each line; ``#`` begins a comment.

A program names the file after the app and a colon: ``kbench:./actions.txt``.
"""

from __future__ import annotations

from pathlib import Path

from mepof.app.apps import Action
from mepof.errors import InputError
from mepof.scenario.protocol import Argument, Part


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
        if any(part.script is None for part in parts):
            raise InputError(
                "scenario `script` needs a file for each app", "write kbench:./actions.txt"
            )
        actions = tuple(
            part.app.action(name)
            for part in parts
            for line in (part.script or "").splitlines()
            if (name := line.partition("#")[0].strip())
        )
        if not actions:
            raise InputError("the script lists no actions")
        return actions


SCENARIO = Script()
