"""``script``: the actions that a file lists, one name a line; ``#`` begins a comment.

The file stands behind the app's colon: ``kbench:./actions.txt``.
"""

from __future__ import annotations

from pathlib import Path

from mepof.app.apps import Action, App
from mepof.errors import InputError


def read_script(path: Path) -> str:
    """The text of a script file.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the script {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the script {path} is no text") from error


class Script:
    """A fixed list of the user's."""

    interactive = False

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        if len(scripts) != len(apps):
            raise InputError(
                "scenario `script` needs a file for each app", "write it like kbench:./actions.txt"
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
