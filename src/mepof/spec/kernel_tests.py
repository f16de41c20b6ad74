"""``kernel-tests``: boots of a kernel in which it runs tests."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.gate.results import Gate
from mepof.plan.typed import In, StepModel


class KernelTests(StepModel[In], Generic[In]):
    """The tests of a gate with one kernel.

    Attributes:
        kernel: a build or an image file; for ``kunit``, with the tests built in.
        programs: the test programs of ``kselftest``.
        seed: of the first boot; each further boot has the next one.
        cpus: of the guest.
    """

    kind: ClassVar[str] = "kernel-tests"

    gate: Gate
    arch: str
    device: str
    seed: int
    boots: int
    kernel: In
    guest: In
    programs: In | None = None
    cpus: int = 1
