"""``executed-objects``: the objects of a kernel in which a run executed something."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class ExecutedObjects(StepModel[In], Generic[In]):
    """The objects of a build that have code in a branch trace.

    Attributes:
        raw: the branch trace, with every branch.
        kernel: the build that ran.
    """

    kind: ClassVar[str] = "executed-objects"

    raw: In
    kernel: In
