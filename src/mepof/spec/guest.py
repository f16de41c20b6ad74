"""``guest``: the user space that kernels are booted with."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class Guest(StepModel[In], Generic[In]):
    """The guest of one architecture."""

    kind: ClassVar[str] = "guest"

    arch: str
