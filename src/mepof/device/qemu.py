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
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof import arch
from mepof.arch import Machine
from mepof.device import batch, console, tcg_plugins, uml
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import (
    BootFailure,
    Description,
    Interval,
    KernelHang,
    Outcome,
    Session,
    check_cpus,
)
from mepof.device.qemu_command import BootFiles, command
from mepof.device.watchdog import Watchdog
from mepof.distribution import installing_newer
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.body import Claim
from mepof.process import Completed, of_machine, run

_MIN_VERSION = (10, 0)
# Its version of the plugin interface differs from those before and after it
# (native/tcg-plugin/qemu_plugin_api.c).
_EXCEPT_VERSION = (11, 0)


class Qemu:
    """QEMU's full-system emulation."""

    records_all = True

    def check(self, arch: str) -> None:
        _machine(arch)

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
            name="qemu",
            accel="tcg",
            cpu=_machine(arch).cpu.partition(",")[0],
            mode="icount shift=0: 1 instruction = 1 ns",
        )

    def claim(self, arch: str) -> Claim | None:
        return None  # each boot is a process of its own, and none changes another's counts

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        return tcg_plugins.needs(observed)

    def max_cpus(self, arch: str) -> int:
        return _machine(arch).max_cpus

    def counter(self, arch: str) -> str:
        _machine(arch)
        return "every instruction and taken branch, emulated"

    def locator(self, arch: str) -> str:
        _machine(arch)
        return "every executed block, emulated"

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
        check_cpus(self, session.arch, session.cpus)
        _version(machine)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        files = BootFiles(directory)
        files.initramfs.write_bytes(batch.initramfs_of(session))
        watchdog = Watchdog(session, files.console, files.port, replied)
        try:
            done = runner(
                command(machine, session, files),
                watch=watchdog.look,
                interactive=session.interactive,
                check=False,
            )
        except WorkError as error:
            batch.raise_if_panicked(files.console, files.port)
            kind = KernelHang if watchdog.expired else BootFailure
            raise batch.failure(kind, error.message, files.console, files.port) from error
        batch.raise_if_panicked(files.console, files.port)
        if done.status != 0:
            last = done.output.rstrip().rpartition("\n")[2] or "it said nothing"
            raise batch.failure(
                BootFailure,
                f"{machine.binary} ended with status {done.status}: {last}",
                files.console,
                files.port,
            )
        return _outcome(session, files)


def _sessions(arch: str) -> tuple[Session, ...]:
    """Those whose commands decide what a session gives."""
    kinds = (Measure(), Branches(), Branches(period=1))
    artifacts = {name: Path(name) for each in kinds for name in tcg_plugins.needs(each)}
    plain = Session(arch, Path("kernel"), Path("initramfs"), (), seed=0, artifacts=artifacts)
    sessions = [
        replace(plain, measure=each) if isinstance(each, Measure) else replace(plain, record=each)
        for each in kinds
    ]
    pci = _machine(arch).pci
    if pci is not None:
        config = "".join(f"CONFIG_{option}=y\n" for option in pci.options)
        sessions += [replace(each, config=config) for each in sessions]
    return tuple(sessions)


def _machine(name: str) -> Machine:
    machine = arch.get(name).machine
    if machine is None:
        known = ", ".join(each.name for each in arch.records() if each.machine is not None)
        remedy = "write `set device uml`" if name == uml.ARCH else f"known: {known}"
        raise InputError(f"the device qemu has no machine for {name}", remedy)
    return machine


@of_machine
@cache
def _version(machine: Machine) -> str:
    remedy = installing_newer(machine.package)
    path = shutil.which(machine.binary)
    if path is None:
        raise EnvironmentLack(f"{machine.binary} is not installed", remedy)
    banner = run([path, "--version"]).output.partition("\n")[0]
    found = re.search(r"version (\d+)\.(\d+)", banner)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < _MIN_VERSION:
        needed = ".".join(map(str, _MIN_VERSION))
        raise EnvironmentLack(f"{banner or path} is older than {needed}", remedy)
    if version == _EXCEPT_VERSION:
        raise EnvironmentLack(
            f"{banner} does not load mepof's plugins", "install 11.1 or later, or 10.x"
        )
    return banner


def _outcome(session: Session, files: BootFiles) -> Outcome:
    release, answers = batch.answers(session, files.console, files.port)
    return Outcome(
        release,
        answers,
        _intervals(session, files),
        console.text_of(files.console),
        _branches(session, files),
        _locations(session, files),
    )


def _intervals(session: Session, files: BootFiles) -> tuple[Interval, ...]:
    if session.measure is None or not session.measure.counts:
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
        raise BootFailure("the emulator's plugin did not write which code was executed")
    return files.locations


def _branches(session: Session, files: BootFiles) -> Path | None:
    if session.record is None:
        return None
    if not files.branches.is_file():
        raise BootFailure("the recording plugin wrote no branch trace")
    return files.branches


DEVICE = Qemu()
