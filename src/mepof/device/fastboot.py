"""A phone in its boot loader, over the real ``fastboot``."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mepof.distribution import installing_newer
from mepof.errors import WorkError
from mepof.process import find_tool, run

INSTALL = "apt-get install fastboot"
_ANSWER = 20.0
# Seconds for an image of 64 MiB over USB 2.0, with much to spare.
_TRANSFER = 180.0
_NETWORK = re.compile(r"(tcp|udp):(.+?):(\d+)")
_FAILED = re.compile(r"FAILED \((?:remote: )?'?(.*?)'?\)\s*$", re.M)


class Refused(WorkError):
    """The boot loader did not accept a command."""


class NotThere(WorkError):
    """The phone is not in fastboot, or the connection broke."""


NO_PERMISSION = (
    "this user may not use its USB port",
    f"{installing_newer('android-udev-rules')}, and connect it again",
)
"""Why a phone at a USB port cannot be used, and the remedy."""


@dataclass(frozen=True)
class Fastboot:
    """A phone.

    Attributes:
        serial: as ``fastboot devices`` lists it, or ``tcp:HOST:PORT`` or ``udp:HOST:PORT``.
    """

    serial: str

    def present(self) -> bool:
        """Whether the phone is in fastboot now: in its boot loader, or in ``fastbootd``.

        Raises:
            EnvironmentLack: fastboot is not installed.
        """
        program = find_tool("fastboot", INSTALL)
        network = _NETWORK.fullmatch(self.serial)
        if network is None:
            listed = run((program, "devices"), timeout=_ANSWER, check=False).output
            return any(line.split()[:1] == [self.serial] for line in listed.splitlines())
        if network[1] == "tcp":
            # The client would wait for a phone that is not there.
            try:
                socket.create_connection((network[2], int(network[3])), 2).close()
            except OSError:
                return False
            return True
        try:
            return self.variable("product") is not None
        except NotThere:
            return False

    def trouble(self) -> tuple[str, str] | None:
        """Why fastboot, which may see the phone, cannot use it, and the remedy; None if it can.

        Raises:
            EnvironmentLack: fastboot is not installed.
        """
        if _NETWORK.fullmatch(self.serial):
            return None
        with suppress(WorkError):
            listed = run((find_tool("fastboot", INSTALL), "devices"), timeout=_ANSWER, check=False)
            if "no permissions" in listed.output:  # in place of a serial number
                return NO_PERMISSION
        return None

    def variable(self, name: str) -> str | None:
        """A variable of the boot loader; None if it does not know it.

        Raises:
            NotThere: the phone does not answer.
        """
        try:
            said = self._run("getvar", name, timeout=_ANSWER)
        except Refused:
            return None
        found = re.search(rf"^(?:\(bootloader\) )?{re.escape(name)}: ?(.*)$", said, re.M)
        return found[1].strip() if found else None

    def slot_variable(self, name: str, slot: str) -> str | None:
        """A variable of a slot, which some boot loaders, as Motorola's, call ``_a``, not ``a``;
        None if the boot loader does not know it.

        Raises:
            NotThere: the phone does not answer.
        """
        found = self.variable(f"{name}:{slot}")
        return self.variable(f"{name}:_{slot}") if found is None else found

    def boot(self, image: Path) -> None:
        """Boot an image from memory.

        Raises:
            Refused: the boot loader does not start it.
            NotThere: the connection broke.
        """
        self._run("boot", str(image), timeout=_TRANSFER)

    def flash(self, partition: str, image: Path) -> None:
        """Write an image to a partition.

        Raises:
            Refused: the boot loader does not accept it.
            NotThere: the connection broke; the partition may be half written.
        """
        self._run("flash", partition, str(image), timeout=_TRANSFER)

    def set_active(self, slot: str) -> None:
        """Make a slot the one that is started next."""
        self._run("set_active", slot, timeout=_ANSWER)

    def reboot(self, to: str = "") -> None:
        """Start the system of the active slot, or something else such as ``bootloader``."""
        self._run("reboot", *((to,) if to else ()), timeout=_ANSWER)

    def _run(self, *words: str, timeout: float) -> str:
        argv = (find_tool("fastboot", INSTALL), "-s", self.serial, *words)
        try:
            done = run(argv, timeout=timeout, check=False)
        except WorkError as error:
            raise NotThere(
                f"{self.serial} did not answer `fastboot {words[0]}` within {timeout:g} s",
                "check the cable, and that the phone shows its boot loader",
            ) from error
        if done.status == 0:
            return done.output
        failed = _FAILED.findall(done.output)
        said = failed[-1] if failed else done.output.strip().rpartition("\n")[2]
        if failed and "remote" in done.output:
            raise Refused(f"the boot loader of {self.serial} refuses `{words[0]}`: {said}")
        raise NotThere(
            f"the connection to {self.serial} broke during `fastboot {words[0]}`: {said}",
            "check the cable",
        )
