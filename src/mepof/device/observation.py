"""What a session observes of a kernel, in terms that hold for every device.

A session says what it wants to know. How a device finds that out, and which artifacts it needs
for that, is the device's own business (:meth:`mepof.device.protocol.Boot.needs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mepof.errors import InputError

# What the format of branch traces allows (docs/recorder-trace.md).
MAX_DEPTH = 1024
MAX_PERIOD = (1 << 64) - 1


@dataclass(frozen=True)
class Measure:
    """Count instructions and branches between kbench's marks.

    Attributes:
        core: name of the core that is modelled as well; None models none.
        settings: of that model: sizes and latencies, ``name=value`` each (docs/pmu.md). What a
            device needs does not depend on them, so a plan leaves them out.
        locations: whether to report in which code the modelled events are, too. Without a core:
            how often which code was executed, instead of counting (:class:`LocationSource`).
        cpu: the emulator's name of the processor that the kernel finds; None for its default.
    """

    core: str | None = None
    settings: tuple[str, ...] = ()
    locations: bool = False
    cpu: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it gives a count of each interval."""
        return self.core is not None or not self.locations


@dataclass(frozen=True)
class Branches:
    """Record the kernel's branches between the requests ``Record``.

    Attributes:
        period: taken branches from one sample of the branch stack to the next; None records
            every taken branch and fall-through range.
        depth: entries of the branch stack; ignored without a period.
        cpu: as of :class:`Measure`.

    Raises:
        InputError: the period or the depth is out of range.
    """

    period: int | None = None
    depth: int = 32
    cpu: str | None = None

    def __post_init__(self) -> None:
        if self.period is not None and not 1 <= self.period <= MAX_PERIOD:
            raise InputError(
                f"a branch stack cannot be sampled every {self.period} taken branches",
                "give a period of at least 1",
            )
        if not 1 <= self.depth <= MAX_DEPTH:
            raise InputError(
                f"a branch stack cannot have {self.depth} entries",
                f"give a depth of 1 to {MAX_DEPTH}",
            )


@dataclass(frozen=True)
class ArtifactNeed:
    """An artifact that a device needs, as the step that makes it.

    Attributes:
        kind: of the step.
        params: of the step.
        files: those of the artifact that decide what a session gives.
    """

    kind: str
    params: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
