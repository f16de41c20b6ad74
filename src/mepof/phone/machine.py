"""The processor of a virtual phone: QEMU runs what the boot loader has loaded."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof import arch
from mepof.errors import InputError, WorkError
from mepof.phone.adb_port import AdbPort
from mepof.phone.loading import Loaded, before, partitions_archive
from mepof.phone.state import MIB
from mepof.process import run


@dataclass(frozen=True)
class Ended:
    """How a system went down.

    Attributes:
        how: ``crash`` for a reset that the system did not ask for, ``reboot``, ``bootloader``,
            ``off``.
    """

    how: str


@dataclass(frozen=True)
class Qemu:
    """A machine with the real adbd in it.

    Attributes:
        directory: of the phone; files of a start lie in ``guest`` below it.
        adb_port: of the loopback interface, at which adb finds the phone.
        memory: bytes.
        tell: called with what a screen would show.
    """

    arch: str
    directory: Path
    adb_port: int
    memory: int
    tell: Callable[[str], None]

    def run(
        self,
        loaded: Loaded,
        parameters: Sequence[str],
        partitions: Mapping[str, bytes],
        asked: Callable[[str], None],
        cancel: threading.Event | None = None,
    ) -> Ended:
        """Run a kernel until it resets or powers off.

        Args:
            parameters: what the boot loader adds to the command line.
            partitions: what the system reads below ``/dev/block/by-name``.
            asked: called with what the system asks of the boot loader, ``successful SLOT`` or
                ``active SLOT``.
            cancel: ends it.

        Raises:
            EnvironmentLack: QEMU is missing.
            WorkError: it failed.
            Interrupted: ``cancel`` was set.
        """
        work = self.directory / "guest"
        work.mkdir(exist_ok=True)
        (work / "kernel").write_bytes(loaded.kernel)
        ramdisk = before(loaded.ramdisk, partitions_archive(partitions))
        (work / "ramdisk").write_bytes(ramdisk)
        control = work / "control"
        control.write_bytes(b"")
        console = work / "console.log"
        console.unlink(missing_ok=True)
        # A path of a socket has 107 bytes at most, and a user's directory may have more.
        with tempfile.TemporaryDirectory(prefix="mepof-") as short:
            adb = AdbPort(self.adb_port, Path(short) / "adb")
            heard = _Control(control, adb, asked)
            cmdline = " ".join([loaded.cmdline, *parameters]).strip()
            words = self._command(work, cmdline, Path(short) / "adb")
            log = work / "qemu.log"
            try:
                done = run(words, watch=heard.look, cancel=cancel, log=log, check=False)
            finally:
                adb.close()
        heard.look()
        if done.status != 0:
            last = done.output.strip().rpartition("\n")[2]
            raise WorkError(f"{words[0]} ended with status {done.status}: {last}")
        return Ended(heard.ended)

    def _command(self, work: Path, cmdline: str, adb: Path) -> list[str]:
        machine = arch.get(self.arch).machine
        if machine is None:
            known = ", ".join(each.name for each in arch.records() if each.machine is not None)
            raise InputError(f"there is no virtual phone for {self.arch}", f"known: {known}")
        # The boot loader restarts it: QEMU ends whenever the kernel resets the machine.
        words = (machine.parameters, machine.real_time, "panic=-1", cmdline)
        parameters = " ".join(filter(None, words))
        return [
            machine.binary,
            *machine.words(),
            *("-accel", "tcg"),
            *("-m", str(self.memory // MIB)),
            *("-nodefaults", "-no-user-config", "-no-reboot"),
            *("-display", "none"),
            *("-kernel", str(work / "kernel")),
            *("-initrd", str(work / "ramdisk")),
            *("-append", parameters),
            *("-serial", f"file:{_value(work / 'console.log')}"),
            *("-chardev", f"file,id=control,path={_value(work / 'control')}"),
            *("-device", "virtserialport,chardev=control,name=control"),
            *("-chardev", f"socket,id=adb,path={_value(adb)},server=on,wait=off"),
            *("-device", "virtserialport,chardev=adb,name=adb"),
        ]


class _Control:
    """What a system writes to its boot loader, line by line."""

    def __init__(self, path: Path, adb: AdbPort, asked: Callable[[str], None]) -> None:
        self._path = path
        self._adb = adb
        self._asked = asked
        self._read = 0
        self.ended = "crash"

    def look(self) -> None:
        text = self._path.read_bytes()
        whole = text.rpartition(b"\n")[0]
        for line in whole[self._read :].split(b"\n"):
            self._heard(line.decode("ascii", "replace").strip())
        self._read = len(whole)

    def _heard(self, line: str) -> None:
        verb, _, what = line.partition(" ")
        if verb == "reboot":
            self.ended = "bootloader" if what == "bootloader" else "reboot"
        elif verb == "off":
            self.ended = "off"
        elif line == "adbd up":
            self._adb.open()
        elif line == "adbd down":
            self._adb.drop()
        elif line:
            self._asked(line)


def _value(path: Path) -> str:
    """A path as the value of one of QEMU's options, where a comma ends a value."""
    return str(path).replace(",", ",,")
