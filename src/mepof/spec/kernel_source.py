"""``kernel-source``: a kernel source tree in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class KernelSource(StepModel[In], Generic[In]):
    """A kernel source by its address.

    Attributes:
        address: as the program writes it; None for a path of this machine, which is ``origin``.
        origin: the directory or tarball of this machine that the address names, if it does.
        pin: what the address left open when the run was planned, such as the commit of a branch;
            None until then.
    """

    kind: ClassVar[str] = "kernel-source"

    address: str | None = None
    origin: In | None = None
    pin: Mapping[str, str] | None = None
