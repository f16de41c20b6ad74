"""QEMU's command line for a session, and the files that a boot leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mepof.arch import Machine
from mepof.device import tcg_plugins
from mepof.device.observation import Branches, Measure
from mepof.device.protocol import Session

# Where a process's mappings lie decides how many page-table pages a fork copies: 5 % of its
# instructions from seed to seed. That is not a difference between kernels.
_COMMON_PARAMETERS = "panic=-1 oops=panic nokaslr norandmaps"


@dataclass(frozen=True)
class BootFiles:
    """The files of one boot."""

    directory: Path

    @property
    def initramfs(self) -> Path:
        return self.directory / "initramfs"

    @property
    def console(self) -> Path:
        return self.directory / "console.log"

    @property
    def port(self) -> Path:
        return self.directory / "replies"

    @property
    def counts(self) -> Path:
        return self.directory / "counts.json"

    @property
    def locations(self) -> Path:
        return self.directory / "places.jsonl"

    @property
    def branches(self) -> Path:
        return self.directory / "branches.trace"


def command(machine: Machine, session: Session, files: BootFiles) -> list[str]:
    """The words that start QEMU."""
    parameters = " ".join((machine.parameters, _COMMON_PARAMETERS, *session.parameters))
    if session.interactive:
        parameters += " quiet"  # the console is the user's
    log = _value(files.console)
    console = f"stdio,signal=off,logfile={log}" if session.interactive else f"file,path={log}"
    observed = session.measure or session.record
    words = [
        machine.binary,
        *machine.words(None if observed is None else observed.cpu, session.config),
        *("-accel", "tcg"),
        *("-icount", "shift=0,sleep=off"),
        *("-seed", str(session.seed)),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm"),
        *("-m", str(session.memory)),
        *("-smp", str(session.cpus)),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none"),
        *("-kernel", str(session.kernel)),
        *("-initrd", str(files.initramfs)),
        *("-append", parameters),
        *("-chardev", f"{console},id=console", "-serial", "chardev:console"),
        *("-chardev", f"file,id=agent,path={_value(files.port)}"),
        *("-device", "virtserialport,chardev=agent,name=mepof"),
    ]
    # With -icount all CPUs take turns in one thread.
    turns = ("cpus=turns",) if session.cpus > 1 else ()
    if session.measure is not None:
        plugin = tcg_plugins.path(session.measure, session.artifacts)
        settings = (*_measuring(session.measure, files), *(turns if session.measure.counts else ()))
        words += ["-plugin", ",".join((_value(plugin), *settings))]
        if session.measure.core is not None:
            words += _readable_memory(session.memory)
    if session.record is not None:
        plugin = tcg_plugins.path(session.record, session.artifacts)
        settings = (*_recording(session.record, files), *turns)
        words += ["-plugin", ",".join((_value(plugin), *settings))]
    return words


def _readable_memory(mebibytes: int) -> tuple[str, ...]:
    """Memory that the model of a core finds by its name and reads (native/pmu/pages.c)."""
    backend = f"memory-backend-memfd,id=memory,size={mebibytes}M"
    return ("-object", backend, "-machine", "memory-backend=memory")


def _measuring(measure: Measure, files: BootFiles) -> tuple[str, ...]:
    if not measure.counts:
        return (f"out={_value(files.locations)}",)
    locations = (f"where={_value(files.locations)}",) if measure.locations else ()
    return (f"out={_value(files.counts)}", *locations, *measure.settings)


def _recording(branches: Branches, files: BootFiles) -> tuple[str, ...]:
    sampling = (
        () if branches.period is None else (f"sample={branches.period}", f"depth={branches.depth}")
    )
    return (f"out={_value(files.branches)}", "span=session", *sampling)


def _value(path: Path) -> str:
    """A path as the value of one of QEMU's options, where a comma ends a value."""
    return str(path).replace(",", ",,")
