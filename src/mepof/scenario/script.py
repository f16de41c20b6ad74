"""``script``: the actions that a file lists, one on each line; ``#`` begins a comment.

A program names the file after the app and a colon: ``kbench:./actions.txt``.
"""

from __future__ import annotations

from pathlib import Path

from mepof.app.apps import Action, App
from mepof.errors import InputError


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

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        if len(scripts) != len(apps):
            raise InputError(
                "scenario `script` needs a file for each app", "write kbench:./actions.txt"
            )
        actions = tuple(
            app.action(name)
            for app, script in zip(apps, scripts, strict=True)
            for line in script.splitlines()
            if (name := line.partition("#")[0].strip())
        )
        if not actions:
            raise InputError("the script lists no action")
        return actions


SCENARIO = Script()
