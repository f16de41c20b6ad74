"""``kernel-package``: a kernel as it is installed."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel
from mepof.spec.kernel_build import KernelBuild


class KernelPackage(StepModel[In], Generic[In]):
    """A package of a build.

    Attributes:
        format: its name.
        revision: of the package; it grows where the same version is packaged again.
        given: the file that the package is made of, if the program names one.
        built: how the kernel was built, for formats of its source.
    """

    kind: ClassVar[str] = "kernel-package"

    format: str
    arch: str
    toolchain: str
    kernel: In
    revision: int = 1
    given: In | None = None
    built: KernelBuild[In] | None = None
