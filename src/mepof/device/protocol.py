"""What a device can do: small protocols, and each device has those that it names in its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from mepof.device.agent import Exec, Reply, Request
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.shell import Shell
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.body import Claim
from mepof.process import Completed
from mepof.registry import Registry

# The guest's archive, in the artifact of the step ``guest``.
INITRAMFS = "initramfs.cpio"

#: MiB that an emulator takes beside its guest's memory: its own, and the code that it translated.
EMULATOR_MEMORY = 512

# A limit of the user's counts the guest's time; the emulator takes several times as long.
_SLOWDOWN = 10


class BootFailure(WorkError):
    """The kernel did not come up, or went down; the message ends with the console's last lines.

    Attributes:
        replies: to the requests that were answered before; None if the agent did not come up.
        console: all that the kernel wrote.
    """

    replies: tuple[Reply, ...] | None = None
    console: str = ""


class KernelPanic(BootFailure):
    """The kernel panicked or oopsed."""


class KernelHang(BootFailure):
    """The guest was silent for too long."""


class GuestReset(BootFailure):
    """The guest went down without a panic on the console."""


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
        """Whether two boots of one kernel with one seed are the same, whenever they are made."""
        return self.mode.startswith("icount")


@dataclass(frozen=True)
class Interval:
    """What happened between a start and a stop mark, counted, not sampled.

    Attributes:
        kernel_repeats: of string instructions with a repeat prefix: ``instructions``,
            ``iterations``, and ``bytes`` that they store or, without storing, read; None where
            that is not counted.
        user_repeats: likewise, in user space.
        kernel_events: what a model of a core counted in the kernel, by the event's name; None
            without a model.
        user_events: likewise, in user space.
    """

    kernel_instructions: int
    user_instructions: int
    kernel_taken_branches: int
    user_taken_branches: int
    kernel_events: Mapping[str, int] | None = None
    user_events: Mapping[str, int] | None = None
    kernel_repeats: Mapping[str, int] | None = None
    user_repeats: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Interlude:
    """What this machine does over a shell of the booted system, between requests.

    Attributes:
        after: the number of requests that are served before it.
    """

    after: int
    act: Callable[[Shell], None]


@dataclass(frozen=True)
class Session:
    """One boot, and what it is asked to do.

    Attributes:
        kernel: bootable image.
        config: the kernel's whole configuration; empty where it is not known.
        initramfs: the guest's user space, with the agent as its first process.
        requests: what the agent does, in order.
        seed: of everything random in the machine.
        measure: what is counted between kbench's marks (:class:`CounterSource`).
        record: how the kernel's branches are recorded between the requests ``Record``
            (:class:`BranchSource`).
        artifacts: directories of what :meth:`Boot.needs` named, by its names.
        interactive: the user's terminal is the console.
        archives: further initramfs archives, laid over the guest's: what a suite adds.
        memory: of the machine, in MiB.
        cpus: of the machine.
        boot_seconds: limit of silence until the agent answers, without the time that unpacking
            `archives` takes.
        quiet_seconds: limit between two of its replies.
        parameters: added to the kernel's command line.
        interlude: for devices whose system has a shell (:class:`WithSystem`).
    """

    arch: str
    kernel: Path
    initramfs: Path
    requests: tuple[Request, ...]
    seed: int
    measure: Measure | None = None
    record: Branches | None = None
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    interactive: bool = False
    archives: tuple[Path, ...] = ()
    memory: int = 512
    cpus: int = 1
    boot_seconds: float = 120
    quiet_seconds: float = 600
    parameters: tuple[str, ...] = ()
    interlude: Interlude | None = None
    config: str = ""


def quiet_seconds(commands: Iterable[Exec]) -> float:
    """The limit between two replies of a session with commands of the user's."""
    return max([Session.quiet_seconds, *(_SLOWDOWN * each.timeout for each in commands)])


@dataclass(frozen=True)
class Outcome:
    """What a session gave: the kernel's release, a reply for each request, and the counts.

    Attributes:
        branches: the branch trace (docs/recorder-trace.md), in the boot's directory.
        locations: where the model's events are (docs/pmu.md), in the boot's directory.
    """

    release: str
    replies: tuple[Reply, ...]
    intervals: tuple[Interval, ...]
    console: str
    branches: Path | None = None
    locations: Path | None = None


class Boot(Protocol):
    """A device that boots a kernel from RAM, serves the requests, and powers off."""

    def check(self, arch: str) -> None:
        """Refuse an architecture whose kernels it does not boot, and wrong files that describe the
        device, before anything is made. This needs no tool.

        Raises:
            InputError: it does not boot them, or a file is wrong.
        """

    def identity(self, arch: str) -> Mapping[str, str]:
        """Versions of the programs that decide what a session gives.

        Raises:
            EnvironmentLack: one is missing.
        """

    def describe(self, arch: str) -> Description:
        """The device as a report names it."""

    def claim(self, arch: str) -> Claim | None:
        """How a step reserves the device for itself while it runs; None if any number of boots can
        run at the same time and none changes what another gives."""

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        """The artifacts that a session needs to observe something, by the names under which
        :attr:`Session.artifacts` has them. Hardware with counters of its own needs none."""

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
            replied: called with the number of requests that have been answered, while it runs.

        Raises:
            BootFailure: the kernel panicked, hung or reset.
        """


@runtime_checkable
class CounterSource(Boot, Protocol):
    """A device that counts: its sessions heed ``Session.measure``."""

    def counter(self, arch: str) -> str:
        """What counts there, as a report names it.

        Raises:
            EnvironmentLack: it cannot on that architecture.
        """


@runtime_checkable
class LocationSource(Boot, Protocol):
    """A device that says how often which kernel code was executed: its sessions heed
    ``Session.measure`` with locations and without a core."""

    def locator(self, arch: str) -> str:
        """What says that there.

        Raises:
            InputError: nothing on that architecture.
        """


@runtime_checkable
class BranchSource(Boot, Protocol):
    """A device that records branches: its sessions heed ``Session.record``.

    Attributes:
        records_all: it records every branch, so that what it did not see did not run.
    """

    records_all: bool

    def branch_recorder(self, arch: str) -> str:
        """What records branches there, as a report names it.

        Raises:
            EnvironmentLack: it cannot on that architecture.
        """


@runtime_checkable
class Flashable(Boot, Protocol):
    """A device that keeps an image and starts it from then on."""

    def flash(
        self,
        session: Session,
        directory: Path,
        sound: Callable[[Outcome], None],
        note: Callable[[str], None],
    ) -> Mapping[str, str]:
        """Flash the kernel of a session.

        Args:
            session: what it is asked to do, from memory before and from the device after it was
                written.
            directory: scratch on this machine.
            sound: raises what is wrong with the outcome of the session.
            note: called with a line for everything that is done.

        Returns:
            What was done, for people and programs.

        Raises:
            WorkError: the device has what it had before; or the message says what it has.
        """


@runtime_checkable
class Listed(Boot, Protocol):
    """A device of which a workplace lists its own."""

    def check_list(self) -> None:
        """Look for the list.

        Raises:
            InputError: it is wrong.
            EnvironmentLack: there is none, so that nothing can be booted here.
        """


@runtime_checkable
class WithSystem(Boot, Protocol):
    """A device whose boots start a system with a shell: its sessions heed ``Session.interlude``."""

    def system(self) -> str:
        """What that system is, as a report names it."""


@runtime_checkable
class SeveralCpus(Boot, Protocol):
    """A device whose guests can have several CPUs: its sessions heed ``Session.cpus``."""

    def max_cpus(self, arch: str) -> int:
        """The largest number of CPUs of a guest."""


DEVICES: Registry[Boot] = Registry("mepof.device", "DEVICE", "device", Boot)


def counter_source(name: str) -> CounterSource:
    """The device of that name, if it counts.

    Raises:
        InputError: there is no such device.
        EnvironmentLack: it does not count.
    """
    device = DEVICES.get(name)
    if not isinstance(device, CounterSource):
        raise EnvironmentLack(
            f"the device {name} does not count instructions",
            "measure on the device qemu, count on a machine with `mepof device count`, or time "
            "code of `um` natively with `make bench-native` (docs/benchmarks/native.md)",
        )
    return device


def branch_source(name: str) -> BranchSource:
    """The device of that name, if it records branches.

    Raises:
        InputError: there is no such device.
        EnvironmentLack: it does not record.
    """
    device = DEVICES.get(name)
    if not isinstance(device, BranchSource):
        raise EnvironmentLack(
            f"the device {name} does not record branches",
            "use a perf.data file from a real machine, or record on the device qemu",
        )
    return device


def flashable(name: str) -> Flashable:
    """The device of that name, if it can be flashed.

    Raises:
        InputError: there is no such device, or it cannot.
    """
    device = DEVICES.get(name)
    if not isinstance(device, Flashable):
        raise InputError(
            f"the device {name} cannot be flashed", "write `set device phone` before `flash`"
        )
    return device


def check_cpus(device: Boot, arch: str, cpus: int) -> None:
    """Refuse more CPUs than the guests of a device can have.

    Raises:
        InputError: they are too many.
    """
    most = device.max_cpus(arch) if cpus > 1 and isinstance(device, SeveralCpus) else 1
    if cpus > most:
        name = device.describe(arch).name
        raise InputError(
            f"the device {name} boots {arch} kernels with at most {most} CPU{'s' * (most > 1)}, "
            f"not {cpus}",
            f"write `set cpus {most}` before the statement",
        )
