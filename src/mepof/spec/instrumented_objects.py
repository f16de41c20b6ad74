"""``instrumented-objects``: the objects of a kernel that a program wants to be instrumented."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class InstrumentedObjects(StepModel[In], Generic[In]):
    """A choice among the objects of a kernel.

    Attributes:
        kernel: the build of it that is not instrumented.
        places: parts of the kernel, by subsystem or path; all of it without any.
        percent: the hottest objects of these that make up so much of what ran in them.
        executed: the artifact that lists the objects in which the training runs something.
        raw: the branch trace that says how hot they are.
        profile: that says it instead.
        exclude: files, directories and patterns that are not instrumented.
    """

    kind: ClassVar[str] = "instrumented-objects"

    kernel: In
    places: tuple[str, ...] = ()
    percent: float | None = None
    executed: In | None = None
    raw: In | None = None
    profile: In | None = None
    exclude: tuple[str, ...] = ()
