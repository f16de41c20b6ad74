"""Refuses wrong input before anything is made, for ``check``, ``--dry-run`` and ``run``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.described import refuse_special
from mepof.errors import InputError
from mepof.plan.body import StepBody
from mepof.plan.fingerprint import body_of
from mepof.plan.model import HostInput, Plan

_MAX_SHOWN = 200


def preflight(plan: Plan, bodies: Mapping[str, StepBody]) -> None:
    """Check the host inputs and parameters of every step of a plan, in order.

    Nothing is run, and nothing is written.

    Raises:
        InputError: a file is missing, cannot be read, or is not what the step needs.
    """
    for step in plan.steps:
        body = body_of(step, bodies)
        check, check_in = (getattr(body, name, None) for name in ("check", "check_in"))
        given = [Path(each.path) for each in step.inputs.values() if isinstance(each, HostInput)]
        try:
            for path in given:
                refuse_special(path)
            if check is not None:
                check(step)
            for path in given:
                if not path.exists():
                    raise InputError(f"{path} does not exist")
            if check_in is not None:
                check_in(step, plan)
        except OSError as error:  # a name that is too long, a directory that is closed to us
            raise unreadable(error) from error


def keep_apart(plan: Plan, written: Mapping[str, Path]) -> None:
    """Refuse to write into a directory that a plan reads, which the next run would find changed.

    Args:
        written: directories, by the option that names each.

    Raises:
        InputError: one is in such a directory.
    """
    inputs = (each for step in plan.steps for each in step.inputs.values())
    for path in dict.fromkeys(each.path for each in inputs if isinstance(each, HostInput)):
        for option, directory in written.items():
            if directory.resolve().is_relative_to(Path(path).resolve()):
                raise InputError(
                    f"{directory} is in {path}, which is only read",
                    f"choose a directory outside of it with {option}",
                )


def unreadable(error: OSError) -> InputError:
    """The error for a file of the user that cannot be looked at."""
    name = str(error.filename)
    shown = name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…"
    return InputError(f"{shown} cannot be read: {error.strerror}")
