"""``suite-programs``: what a suite adds to a guest."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class SuitePrograms(StepModel[In], Generic[In]):
    """The programs of one suite for one architecture."""

    kind: ClassVar[str] = "suite-programs"

    arch: str
    suite: str
