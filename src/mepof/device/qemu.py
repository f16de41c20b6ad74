"""The device ``qemu``: the embedded default, by TCG.

A boot is a closed experiment. What the guest is asked to do lies in its initramfs and
its answers go to files, so nothing that happens on the host reaches it; time is the count
of executed instructions (``-icount``), and everything random is seeded. Two boots of one
kernel with one seed are the same, instruction for instruction.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof import arch
from mepof.arch import Machine
from mepof.device import agent, console, initramfs, tcg_plugins
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import (
    BootFailure,
    Description,
    GuestReset,
    Interval,
    KernelHang,
    KernelPanic,
    Outcome,
    Session,
    check_cpus,
)
from mepof.device.qemu_command import BootFiles, command
from mepof.device.watchdog import Watchdog
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed, run

_MIN_VERSION = (10, 0)


class Qemu:
    """QEMU's full-system emulation."""

    def identity(self, arch: str) -> Mapping[str, str]:
        machine = _machine(arch)
        words = [
            word
            for session in _sessions(arch)
            for word in command(machine, session, BootFiles(Path("boot")))
        ]
        return {
            "qemu": _version(machine),
            "qemu command": sha256("\0".join(words).encode()).hexdigest(),
        }

    def describe(self, arch: str) -> Description:
        return Description(
            name="qemu", accel="tcg", cpu="max", mode="icount shift=0: 1 instruction = 1 ns"
        )

    def claim(self, arch: str) -> str | None:
        return None  # each boot is a process of its own, and none changes another's counts

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        return tcg_plugins.needs(observed)

    def max_cpus(self, arch: str, observed: Measure | Branches | None) -> int:
        # QEMU's inline code for plugins is wrong on all vCPUs except the first if they take turns
        # in one thread, as they do with -icount. Only the counting plugin can do without it.
        inline = isinstance(observed, Branches) or (observed is not None and bool(observed.core))
        return 1 if inline else _machine(arch).max_cpus

    def counter(self, arch: str) -> str:
        _machine(arch)
        return "every instruction and taken branch, emulated"

    def branch_recorder(self, arch: str) -> str:
        _machine(arch)
        return "every taken branch, emulated"

    def boot(
        self,
        session: Session,
        directory: Path,
        runner: Callable[..., Completed],
        replied: Callable[[int], None],
    ) -> Outcome:
        machine = _machine(session.arch)
        if session.measure is not None and session.record is not None:
            raise InputError(
                "one boot cannot count and record branches", "count in another boot of the kernel"
            )
        check_cpus(self, session.arch, session.cpus, session.measure or session.record)
        _version(machine)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        files = BootFiles(directory)
        files.initramfs.write_bytes(_initramfs(session))
        watchdog = Watchdog(session, files.console, files.port, replied)
        try:
            done = runner(
                command(machine, session, files),
                watch=watchdog.look,
                interactive=session.interactive,
                check=False,
            )
        except WorkError as error:
            _raise_if_panicked(files)
            kind = KernelHang if watchdog.expired else BootFailure
            raise _failure(kind, error.message, files) from error
        _raise_if_panicked(files)
        if done.status != 0:
            last = done.output.rstrip().rpartition("\n")[2] or "it said nothing"
            raise _failure(
                BootFailure, f"{machine.binary} ended with status {done.status}: {last}", files
            )
        return _outcome(session, files)


def _sessions(arch: str) -> tuple[Session, ...]:
    """Those whose commands decide what a session gives."""
    kinds = (Measure(), Branches(), Branches(period=1))
    artifacts = {name: Path(name) for each in kinds for name in tcg_plugins.needs(each)}
    plain = Session(arch, Path("kernel"), Path("initramfs"), (), seed=0, artifacts=artifacts)
    return tuple(
        replace(plain, measure=each) if isinstance(each, Measure) else replace(plain, record=each)
        for each in kinds
    )


def _machine(name: str) -> Machine:
    machine = arch.get(name).machine
    if machine is None:
        known = ", ".join(each.name for each in arch.records() if each.machine is not None)
        raise InputError(f"the device qemu has no machine for {name}", f"known: {known}")
    return machine


@cache
def _version(machine: Machine) -> str:
    remedy = f"apt-get install -t bookworm-backports {machine.package}"
    path = shutil.which(machine.binary)
    if path is None:
        raise EnvironmentLack(f"{machine.binary} is not installed", remedy)
    banner = run([path, "--version"]).output.partition("\n")[0]
    found = re.search(r"version (\d+)\.(\d+)", banner)
    if found is None or (int(found[1]), int(found[2])) < _MIN_VERSION:
        needed = ".".join(map(str, _MIN_VERSION))
        raise EnvironmentLack(f"{banner or path} is older than {needed}", remedy)
    return banner


def _initramfs(session: Session) -> bytes:
    """The archives that the kernel unpacks one over the other, the requests last."""
    requests = b"".join(agent.encode(each) for each in (*session.requests, agent.PowerOff()))
    return (
        session.initramfs.read_bytes()
        + b"".join(path.read_bytes() for path in session.archives)
        + initramfs.archive(
            (
                initramfs.Entry("mepof", 0o755),
                initramfs.Entry("mepof/requests", 0o600, requests),
            )
        )
    )


def _failure(kind: type[BootFailure], what: str, files: BootFiles) -> BootFailure:
    written = console.text_of(files.console)
    failure = kind(f"{what}{console.tail(written)}", f"see {files.console}")
    failure.replies, failure.console = _replies_so_far(files), written
    return failure


def _replies_so_far(files: BootFiles) -> tuple[agent.Reply, ...] | None:
    """The answers of a guest that went down; None if its agent did not come up."""
    decoder = agent.Decoder()
    with suppress(OSError, WorkError):
        hello, *replies = decoder.feed(files.port.read_bytes()) or (None,)
        if isinstance(hello, agent.Hello):
            return tuple(reply for reply in replies if not isinstance(reply, agent.PoweredOff))
    return None


def _raise_if_panicked(files: BootFiles) -> None:
    panic = console.panic_in(console.text_of(files.console))
    if panic is not None:
        raise _failure(KernelPanic, f"the kernel went down: {panic}", files)


def _outcome(session: Session, files: BootFiles) -> Outcome:
    decoder = agent.Decoder()
    try:
        replies = decoder.feed(files.port.read_bytes() if files.port.exists() else b"")
    except WorkError as error:
        raise _failure(BootFailure, error.message, files) from error
    if not replies or not isinstance(replies[0], agent.Hello):
        raise _failure(GuestReset, "the guest went down before its agent answered", files)
    answers = replies[1:-1]
    if len(answers) != len(session.requests) or not isinstance(replies[-1], agent.PoweredOff):
        done = f"{max(0, len(replies) - 1)} of {len(session.requests)} requests"
        raise _failure(GuestReset, f"the guest went down after {done}", files)
    return Outcome(
        replies[0].release,
        tuple(answers),
        _intervals(session, files),
        console.text_of(files.console),
        _branches(session, files),
        _locations(session, files),
    )


def _intervals(session: Session, files: BootFiles) -> tuple[Interval, ...]:
    if session.measure is None:
        return ()
    try:
        counted = json.loads(files.counts.read_text(encoding="utf-8"))["intervals"]
        return tuple(Interval(**interval) for interval in counted)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BootFailure(f"the counting plugin wrote no valid counts: {error}") from error


def _locations(session: Session, files: BootFiles) -> Path | None:
    if session.measure is None or not session.measure.locations:
        return None
    if not files.locations.is_file():
        raise BootFailure("the plugin of the emulated PMU wrote no locations of events")
    return files.locations


def _branches(session: Session, files: BootFiles) -> Path | None:
    if session.record is None:
        return None
    if not files.branches.is_file():
        raise BootFailure("the recording plugin wrote no branch trace")
    return files.branches


DEVICE = Qemu()
