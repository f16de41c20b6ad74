"""Settings that change nothing of what a program does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mepof.g4.ast import Program, Set
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.settings import NO_PROFILE, SETTINGS, Settings
from mepof.plan.model import Plan

# Where it is not plain what uses a setting.
_USED_BY = {
    "decay": "`set base`, and `set rounds` above 1",
    "depth": "algorithms that record branches",
    "hotness": "`set instrument` with a share or a size, such as `95%`",
    "period": "algorithms that record branches",
    "scout": "algorithms that instrument the kernel",
}


def without_effect(
    program: Program, plan: Plan, compiled: Callable[[Program], Plan]
) -> Iterator[Diagnostic]:
    """Settings in a program without errors, without which its plan is the same.

    One that says what holds anyway is not meant to change anything.

    Args:
        plan: of the program.
        compiled: the plan of another program, with the same text.
    """
    in_force: dict[str, object] = {}
    for index, statement in enumerate(program.statements):
        if not isinstance(statement, Set) or statement.key.text == "name":
            continue
        key, value = statement.key.text, statement.value.text
        read = None if value == NO_PROFILE.get(key) else SETTINGS[key].read(value)
        default = getattr(Settings(), key.replace("-", "_"))
        said, in_force[key] = in_force.get(key, default), read
        others = program.statements[:index] + program.statements[index + 1 :]
        if said != read and compiled(replace(program, statements=others)) == plan:
            used_by = _USED_BY.get(key)
            yield Diagnostic(
                statement.span,
                f"{quote(f'set {key}')} has no effect: nothing that follows uses it",
                f"it is for {used_by}" if used_by else "leave it out, or move it up",
            )
