"""The errors that a user sees: one line that says what is wrong, and what mends it.

Three roots, after whose turn it is: the user's input (exit status 2), the environment
(3), the work itself (1). An interrupt is 130. Anything else that reaches the top is a
bug of ours and is reported as one.
"""

from __future__ import annotations


class MepofError(Exception):
    """Base of all expected errors.

    Args:
        message: one line, what is wrong and where.
        remedy: one line or command that mends it, if we know one.
    """

    exit_status = 1

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class InputError(MepofError):
    """What the user gave us is wrong: a program, a path, a profile."""

    exit_status = 2


class EnvironmentLack(MepofError):
    """The machine lacks something; the remedy is the command that installs it."""

    exit_status = 3


class WorkError(MepofError):
    """The work failed: a build, a boot, a gate."""

    exit_status = 1


class StoreFull(WorkError):
    """The file system under the store or the output has no space left."""


class Interrupted(MepofError):
    """The user asked us to stop."""

    exit_status = 130
