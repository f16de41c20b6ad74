"""``suite-programs``: what a suite or an installed app adds to a guest."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class SuitePrograms(StepModel[In], Generic[In]):
    """The programs of one suite for one architecture.

    Attributes:
        suite: its name, or that of an installed app with programs of its own.
    """

    kind: ClassVar[str] = "suite-programs"

    arch: str
    suite: str
