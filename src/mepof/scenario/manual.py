"""``manual``: the user works at the device's console, and leaves its shell when done."""

from __future__ import annotations

from mepof.app.apps import Action, App


class Manual:
    """It picks no action: what the user does is the workload."""

    interactive = True

    def pick(
        self, apps: tuple[App, ...], count: int, seed: int, scripts: tuple[str, ...]
    ) -> tuple[Action, ...]:
        return ()


SCENARIO = Manual()
