"""``script``: the actions that a file lists, one name a line; ``#`` begins a comment.

The file stands behind the app's colon: ``kbench:./actions.txt``.
"""

from __future__ import annotations

from mepof.errors import InputError
from mepof.scenario.protocol import Action, App


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
