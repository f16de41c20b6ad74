"""``kselftest-programs``: the selftests of a kernel's tree, compiled for guests."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class KselftestPrograms(StepModel[In], Generic[In]):
    """The test programs of one source tree for one architecture.

    Attributes:
        collections: names of those that are compiled; empty for all that the gate knows.
    """

    kind: ClassVar[str] = "kselftest-programs"

    arch: str
    source: In
    collections: tuple[str, ...] = ()
