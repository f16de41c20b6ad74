"""The errors that a user sees: one line that says what is wrong, and a remedy.

The exit status says whose turn it is: wrong input is 2, a lack of the environment 3, failed work
1, and an interrupt 130. Any other exception that reaches the top is a bug in mepof and is
reported as one.
"""

from __future__ import annotations

from collections.abc import Sequence


class MepofError(Exception):
    """Base of all expected errors.

    Args:
        message: one line, what is wrong and where.
        remedy: one line or command that fixes it, if one is known.

    Attributes:
        ends_run: it concerns all steps of a run, so none starts after it.
    """

    exit_status = 1
    ends_run = False

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class InputError(MepofError):
    """The user's input is wrong: a program, a path, a profile."""

    exit_status = 2


class EnvironmentLack(MepofError):
    """Something is missing on the machine; the remedy is the command that installs it."""

    exit_status = 3
    ends_run = True


class WorkError(MepofError):
    """The work failed: a build, a boot, a gate."""

    exit_status = 1


class StoreFull(WorkError):
    """The file system under the store or the output has no space left."""

    ends_run = True


class Interrupted(MepofError):
    """The user asked mepof to stop."""

    exit_status = 130


def listed(names: Sequence[str], most: int) -> str:
    """Names for one line: the first ``most`` of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
