"""What a device offers. Each device says which of these it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mepof.device.agent import Reply, Request
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed
from mepof.registry import Registry

# What the recorder's trace allows (docs/recorder-trace.md).
DEEPEST_STACK = 1024

# What a session needs, as the steps that make it name it.
INITRAMFS = "initramfs.cpio"
COUNTER = "count.so"
PMU = "pmu.so"
RECORDER = "record.so"


class BootFailure(WorkError):
    """The kernel did not come up, or went down while it worked; the console's end is told."""


class KernelPanic(BootFailure):
    """The kernel panicked or oopsed."""


class KernelHang(BootFailure):
    """Nothing was heard of it for too long."""


class GuestReset(BootFailure):
    """It went down without a word."""


@dataclass(frozen=True)
class Description:
    """A device as a report names it.

    Attributes:
        accel: what executes the instructions: ``tcg``, ``kvm``, ``hardware``.
        cpu: processor model.
        mode: how time passes: ``icount …`` when it is derived from the instruction count.
    """

    name: str
    accel: str
    cpu: str
    mode: str

    @property
    def repeats(self) -> bool:
        """Two boots of one kernel with one seed are the same, whenever they are made."""
        return self.mode.startswith("icount")


@dataclass(frozen=True)
class Interval:
    """What happened between a start and a stop mark, counted, not sampled.

    Attributes:
        kernel_events: and its sibling: what a model of a core made of it, by the event's name;
            None without a model.
    """

    kernel_instructions: int
    user_instructions: int
    kernel_taken_branches: int
    user_taken_branches: int
    kernel_events: Mapping[str, int] | None = None
    user_events: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Counting:
    """How an emulator counts instructions and branches between kbench's marks.

    Attributes:
        plugin: of the emulator: ``count.so``, or ``pmu.so``, which models a core beside.
        arguments: of ``pmu.so``: the sizes of the core (docs/pmu.md).
        places: of ``pmu.so``: whether to tell in which code the events are, too.
    """

    plugin: Path
    arguments: tuple[str, ...] = ()
    places: bool = False


@dataclass(frozen=True)
class Recording:
    """How a device records the kernel's branches between the requests ``Record``.

    Attributes:
        plugin: of the emulator: ``record.so``.
        period: taken branches from one sample of the branch stack to the next; None records
            every taken branch and fall-through range.
        depth: entries of the branch stack; without a period it means nothing.

    Raises:
        InputError: no branch stack is like that.
    """

    plugin: Path
    period: int | None = None
    depth: int = 32

    def __post_init__(self) -> None:
        if self.period is not None and not 1 <= self.period < 1 << 64:
            raise InputError(
                f"no branch stack is sampled every {self.period} taken branches",
                "give a period of 1 at least",
            )
        if not 1 <= self.depth <= DEEPEST_STACK:
            raise InputError(
                f"no branch stack has {self.depth} entries",
                f"give a depth of 1 to {DEEPEST_STACK}",
            )


@dataclass(frozen=True)
class Session:
    """One boot, and what it is asked to do.

    Attributes:
        kernel: bootable image.
        initramfs: what runs in user space, with the agent as its first process.
        requests: what the agent does, in order.
        seed: of everything random in the machine.
        count: what counts between kbench's marks; a device that executes on hardware has its own.
        record: record the kernel's branches between the requests ``Record``; not every
            device can (see :class:`BranchSource`), and none counts in the same session.
        interactive: the user's terminal is the console.
        archives: further initramfs archives, laid over the guest's: what a suite adds.
        memory: of the machine, in MiB.
        boot_seconds: limit until the agent answers.
        quiet_seconds: limit between two of its replies.
    """

    arch: str
    kernel: Path
    initramfs: Path
    requests: tuple[Request, ...]
    seed: int
    count: Counting | None = None
    record: Recording | None = None
    interactive: bool = False
    archives: tuple[Path, ...] = ()
    memory: int = 512
    boot_seconds: float = 120
    quiet_seconds: float = 600


@dataclass(frozen=True)
class Outcome:
    """What a session gave: the kernel's release, a reply for each request, and the counts.

    Attributes:
        recording: a recorder's trace (docs/recorder-trace.md), in the boot's directory.
        places: where the model's events are (docs/pmu.md), in the boot's directory.
    """

    release: str
    replies: tuple[Reply, ...]
    intervals: tuple[Interval, ...]
    console: str
    recording: Path | None = None
    places: Path | None = None


class Boot(Protocol):
    """A device that boots a kernel from RAM, does what it is asked, and goes down again."""

    def identity(self, arch: str) -> Mapping[str, str]:
        """Versions of the programs that decide what a session gives.

        Raises:
            EnvironmentLack: one is missing.
        """

    def describe(self, arch: str) -> Description:
        """The device as a report names it."""

    def boot(
        self,
        session: Session,
        directory: Path,
        runner: Callable[..., Completed],
        replied: Callable[[int], None],
    ) -> Outcome:
        """Run a session.

        Args:
            directory: scratch for this boot; the console's log stays there.
            runner: runs a program like :func:`mepof.process.run`.
            replied: told how many requests have been answered, while it runs.

        Raises:
            BootFailure: the kernel panicked, hung or reset.
        """


@runtime_checkable
class BranchSource(Boot, Protocol):
    """A device that can record branches: its sessions heed ``Session.record``."""

    def branch_record(self, arch: str) -> str:
        """What records the branches there, as a report names it.

        Raises:
            EnvironmentLack: it cannot on that architecture.
        """


DEVICES: Registry[Boot] = Registry("mepof.device", "DEVICE", "device")


def branch_source(name: str) -> BranchSource:
    """The device of that name, if it can record branches.

    Raises:
        InputError: there is no such device.
        EnvironmentLack: it cannot.
    """
    device = DEVICES.get(name)
    if not isinstance(device, BranchSource):
        raise EnvironmentLack(
            f"the device {name} records no branches",
            "give a perf.data of a real machine, or record on the device qemu",
        )
    return device
