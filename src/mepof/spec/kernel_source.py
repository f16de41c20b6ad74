"""``kernel-source``: a copy of a kernel source tree in the store."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class KernelSource(StepModel[In], Generic[In]):
    """Either one of Debian's source packages or a source on the host.

    Attributes:
        debian: such as ``debian:linux-source-6.12``.
        origin: directory or tarball.
    """

    kind: ClassVar[str] = "kernel-source"

    debian: str | None = None
    origin: In | None = None
