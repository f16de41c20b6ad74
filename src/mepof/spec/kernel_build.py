"""``kernel-build``: a kernel, plain, built to be profiled, or with profiles."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, Part, StepModel


class Instrumented(Part[In], Generic[In]):
    """The algorithm that profiles the kernel, and in which of its rounds."""

    algorithm: str
    round: int = 1


class BootCheck(Part[In], Generic[In]):
    """How a kernel is booted before it is done."""

    device: str
    seed: int
    guest: In


class KernelBuild(StepModel[In], Generic[In]):
    """A kernel.

    Attributes:
        config: in order, names of our configurations and the user's own files.
        options: of recompilation.
        uses: the algorithms whose profiles the build uses.
        profile: of all of them, and of the earlier rounds of the algorithm that profiles it.
        instrumented: what profiles the kernel, if anything does.
        boot: how it is checked, if it is.
        layout_seed: from 1: the order in which the linker lays out the objects' code.
    """

    kind: ClassVar[str] = "kernel-build"

    arch: str
    toolchain: str
    config: tuple[str | In, ...]
    options: tuple[str, ...]
    source: In
    uses: tuple[str, ...] = ()
    profile: In | None = None
    instrumented: Instrumented[In] | None = None
    boot: BootCheck[In] | None = None
    layout_seed: int | None = None
