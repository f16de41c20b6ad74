"""What a device offers. Each device says which of these it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mepof.device.agent import Reply, Request
from mepof.errors import WorkError
from mepof.process import Completed
from mepof.registry import Registry


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


@dataclass(frozen=True)
class Guest:
    """What runs in user space: an initramfs with the agent as its first process."""

    initramfs: Path
    plugin: Path

    @classmethod
    def of(cls, artifact: Path) -> Guest:
        """The guest of a ``guest`` step's artifact."""
        return cls(artifact / "initramfs.cpio", artifact / "count.so")


@dataclass(frozen=True)
class Interval:
    """What happened between a start and a stop mark, counted, not sampled."""

    kernel_instructions: int
    user_instructions: int
    kernel_taken_branches: int
    user_taken_branches: int


@dataclass(frozen=True)
class Session:
    """One boot, and what it is asked to do.

    Attributes:
        kernel: bootable image.
        requests: what the agent does, in order.
        seed: of everything random in the machine.
        count: count instructions and branches between marks.
        interactive: the user's terminal is the console.
        boot_seconds: limit until the agent answers.
        quiet_seconds: limit between two of its replies.
    """

    arch: str
    kernel: Path
    guest: Guest
    requests: tuple[Request, ...]
    seed: int
    count: bool = False
    interactive: bool = False
    boot_seconds: float = 120
    quiet_seconds: float = 600


@dataclass(frozen=True)
class Outcome:
    """What a session gave: the kernel's release, a reply for each request, and the counts."""

    release: str
    replies: tuple[Reply, ...]
    intervals: tuple[Interval, ...]
    console: str


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


DEVICES: Registry[Boot] = Registry("mepof.device", "DEVICE", "device")
