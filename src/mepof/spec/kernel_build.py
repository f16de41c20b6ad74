"""``kernel-build``: a kernel, plain, instrumented, or optimised with profiles."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, Part, StepModel


class Instrumented(Part[In], Generic[In]):
    """The algorithm that will profile the kernel, and the number of its round.

    Attributes:
        scouted: the artifact that lists the objects to instrument; all objects without one.
        image_bytes: the size that the image may have: as many of the hottest of these objects are
            instrumented as there is room for.
    """

    algorithm: str
    round: int = 1
    scouted: In | None = None
    image_bytes: int | None = None


class BootCheck(Part[In], Generic[In]):
    """How a finished kernel is booted as a check.

    Attributes:
        cpus: of the guest.
        earlier: the build of an earlier round with a check. What it does not instrument is the
            first suspicion where this one does not boot.
    """

    device: str
    seed: int
    guest: In
    cpus: int = 1
    earlier: In | None = None


class KernelBuild(StepModel[In], Generic[In]):
    """A kernel.

    Attributes:
        config: names of mepof's configurations, and the user's own files, in order.
        options: of recompilation.
        uses: the algorithms whose profiles the build uses.
        profile: of all of these, and of the earlier rounds of the algorithm in ``instrumented``.
        instrumented: how the kernel will be profiled, if it will.
        boot: how the kernel is checked, if it is.
        exclude: files, directories and patterns of files in the tree that are not instrumented and
            do not use the profile.
        share: take objects that another build compiled in the same way.
        suffix: what is added to the release name.
        installed: keep what belongs to it where it is installed: the headers with which other
            modules are compiled, and device trees.
        layout_seed: seed of the order in which the linker lays out code; at least 1.
        other_kernel: the profile is of a kernel with another configuration, or for another
            architecture.
        note_dropped: options of the user's files that do not take effect are noted, not refused.
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
    exclude: tuple[str, ...] = ()
    share: bool = True
    suffix: str = ""
    installed: bool = False
    layout_seed: int | None = None
    other_kernel: bool = False
    note_dropped: bool = False
