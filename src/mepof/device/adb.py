"""A phone's shell over ``adb``, the Android debug bridge."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mepof.device.fastboot import NO_PERMISSION
from mepof.device.scripted import ANSWER_SECONDS, ScriptedShell, marked, ran
from mepof.device.shell import LostConnection, Ran
from mepof.distribution import installing_newer
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import find_tool, run

# Seconds for the phone to come back.
_RETURN = 60.0
# Ways to be root: adbd is root already, AOSP's su, the su of Magisk and similar tools.
_PREFIXES: tuple[tuple[str, ...], ...] = ((), ("su", "0", "sh", "-c"), ("su", "-c"))
OTHER_SYSTEMS = ("recovery", "rescue", "sideload")
"""States of a phone that runs something else than its system; adbd restarts it from there."""

UNAUTHORIZED = "unauthorized"
"""State of a phone whose owner has not allowed this machine to use adb."""
# What `adb get-state` says of a phone that it sees and cannot use; why, and the remedy
# (packages/modules/adb/transport.cpp, `ConnectionStateToString`).
_TROUBLES = (
    (
        UNAUTHORIZED,
        "it does not let this machine use adb",
        "unlock its screen and allow USB debugging from this computer",
    ),
    ("permissions", *NO_PERMISSION),
    ("offline", "its adbd does not answer", "connect it again, or `adb reconnect offline`"),
)

INSTALL = installing_newer("adb")
"""The command that installs adb."""

_SCRATCH = "/data/local/tmp"
_ADDRESS = re.compile(r"[^:]+:\d+|adb-.*\._adb-tls-connect\._tcp\.?")


def _program() -> str:
    return find_tool("adb", INSTALL)


def restart(serial: str, to: str) -> None:
    """Restart a phone's system into something else, which adbd does for everyone; without waiting.

    Raises:
        EnvironmentLack: adb is not installed here.
    """
    with suppress(WorkError):  # that is what a restart looks like
        run((_program(), "-s", serial, "reboot", to), timeout=_RETURN, check=False)


class NoRoot(EnvironmentLack):
    """The phone answers, but gives no root."""


@dataclass(frozen=True)
class AdbShell(ScriptedShell):
    """A phone over adb, as root; :meth:`connect` makes one.

    Attributes:
        serial: of the phone as ``adb devices`` lists it, or the address of its adbd.
        name: of the phone, however it is reached.
        prefix: the words that run a script as root, empty where adbd is root; None while the way
            to root is unknown.
    """

    serial: str
    name: str
    prefix: tuple[str, ...] | None = None

    @classmethod
    def connect(cls, serial: str) -> AdbShell:
        """Reach a phone.

        Raises:
            EnvironmentLack: adb is not installed here, or root is not available there.
            LostConnection: the phone cannot be reached.
            InputError: the serial number is not valid.
        """
        _program()
        if not serial or serial.startswith("-"):
            raise InputError(f"`{serial}` is not a serial number of a phone", "see `adb devices`")
        phone = cls(serial, f"adb-{serial}")
        phone.reconnect()
        for prefix in _PREFIXES:
            root = cls(serial, phone.name, prefix)
            if root.run(("id", "-u"), ANSWER_SECONDS).output.strip() == "0":
                number = root.run(("getprop", "ro.serialno"), ANSWER_SECONDS)
                known = number.output.strip() if number.status == 0 else ""
                return cls(serial, f"adb-{known or serial}", prefix)
        raise EnvironmentLack(
            f"{serial} does not give root access", "try `adb root`, or install su on it"
        )

    @classmethod
    def attach(cls, serial: str, root: str) -> AdbShell:
        """Reach a phone that may be booting, within some seconds.

        Args:
            root: ``adbd`` restarts adbd as root where it is not, ``su`` calls su.

        Raises:
            EnvironmentLack: adb is not installed here.
            NoRoot: root is not available there, or not yet.
            LostConnection: the phone does not answer now.
        """
        _program()
        phone = cls(serial, f"adb-{serial}")
        try:
            if not phone.present():
                raise LostConnection(f"{serial} is not connected", "see `adb devices`")
        except LostConnection:
            raise
        except WorkError as error:
            raise LostConnection(f"{serial} did not answer within {ANSWER_SECONDS:g} s") from error
        for attempt in range(2):
            for prefix in _PREFIXES[1:] if root == "su" else _PREFIXES[:1]:
                shell = cls(serial, phone.name, prefix)
                if shell.run(("id", "-u"), ANSWER_SECONDS).output.strip() == "0":
                    return shell
            if root == "su" or attempt:
                break
            phone._adb(("-s", serial, "root"), ANSWER_SECONDS)
            phone.reconnect()
        raise NoRoot(
            f"{serial} does not give root access",
            "install su on it, and let its shell use su"
            if root == "su"
            else 'it needs a system whose adbd can be root, or su and `root = "su"` in its model',
        )

    def present(self) -> bool:
        """Whether the phone's system answers now.

        Raises:
            EnvironmentLack: adb is not installed here.
            WorkError: adb does not answer in time.
        """
        return self._reached() == "device"

    def state(self) -> str:
        """What answers now: ``device`` is the phone's system; empty if nothing does, or not in
        time.

        Raises:
            EnvironmentLack: adb is not installed here.
        """
        try:
            return self._reached()
        except WorkError:
            return ""

    def _reached(self) -> str:
        state = self._state()
        # Another connection would replace the question that is on the phone's screen.
        if self.by_network and state not in ("device", UNAUTHORIZED):
            # adb may still know a connection of before a reboot.
            self._adb(("disconnect", self.serial), ANSWER_SECONDS)
            self._adb(("connect", self.serial), ANSWER_SECONDS)
            state = self._state()
        return state

    def _state(self) -> str:
        said = self._adb(("-s", self.serial, "get-state"), ANSWER_SECONDS)
        if said.status == 0:
            return said.output.strip().rpartition("\n")[2]
        return UNAUTHORIZED if UNAUTHORIZED in said.output else ""

    def trouble(self) -> tuple[str, str] | None:
        """Why adb, which sees the phone, cannot use it now, and the remedy; None if neither.

        Raises:
            EnvironmentLack: adb is not installed here.
        """
        try:
            said = self._adb(("-s", self.serial, "get-state"), ANSWER_SECONDS)
        except WorkError:
            return None
        # A serial number may have one of the words in it.
        output = said.output.replace(self.serial, "") if said.status else ""
        return next(((why, remedy) for word, why, remedy in _TROUBLES if word in output), None)

    def push(self, source: Path, path: str, timeout: float) -> None:
        """Copy a file to the phone.

        Raises:
            LostConnection: the phone cannot be reached.
            WorkError: it does not accept the file.
        """
        self._copied(("push", str(source), path), path, timeout)

    def pull(self, path: str, target: Path, timeout: float) -> None:
        """Copy a file from the phone.

        Raises:
            LostConnection: the phone cannot be reached.
            WorkError: it does not give the file.
        """
        if self.prefix:
            # adbd copies as a user who may not read it.
            copy = f"{_SCRATCH}/copy"
            done = self.run(
                ("sh", "-c", f"cat {shlex.quote(path)} > {copy} && chmod 644 {copy}"), timeout
            )
            if done.status != 0:
                raise WorkError(f"{path} cannot be read on {self.name}: {done.output.strip()}")
            self._copied(("pull", copy, str(target)), path, timeout)
            self.run(("rm", "-f", copy), ANSWER_SECONDS)
            return
        self._copied(("pull", path, str(target)), path, timeout)

    def _copied(self, words: Sequence[str], path: str, timeout: float) -> None:
        try:
            done = self._adb(("-s", self.serial, *words), timeout)
        except WorkError as error:
            raise LostConnection(f"{self.name} did not answer within {timeout:g} s") from error
        if done.status == 0:
            return
        last = done.output.strip().rpartition("\n")[2]
        if "remote" in last or "No space" in last or "denied" in last:
            raise WorkError(f"{words[0]} of {path} failed on {self.name}: {last}")
        raise self._lost(done.output)

    @property
    def option(self) -> str:
        return f"--adb {self.serial}"

    @property
    def by_network(self) -> bool:
        return _ADDRESS.fullmatch(self.serial) is not None

    def reconnect(self) -> None:
        try:
            if self.by_network:
                self._adb(("connect", self.serial), _RETURN)
            # Only its owner can change that: nothing to wait for.
            may_wait = self._state() != UNAUTHORIZED
            wait = ("-s", self.serial, "wait-for-device")
            done = self._adb(wait, _RETURN) if may_wait else None
        except WorkError as error:
            raise self._lost(f"it did not answer within {_RETURN:g} s") from error
        if done is None or done.status != 0:
            raise self._lost(done.output if done else "")
        if self.prefix == ():
            # After a reboot adbd is no longer root.
            self._adb(("-s", self.serial, "root"), ANSWER_SECONDS)
            self._adb(("-s", self.serial, "wait-for-device"), _RETURN)

    def script(self, text: str, timeout: float) -> Ran:
        """As root."""
        asked = ("-s", self.serial, "shell", marked(text, self.prefix or ()))
        try:
            done = self._adb(asked, timeout)
        except WorkError as error:
            raise LostConnection(f"{self.name} did not answer within {timeout:g} s") from error
        found = ran(done.output)
        if found is None:
            raise self._lost(done.output)
        return found

    def _adb(self, words: Sequence[str], timeout: float) -> Ran:
        done = run((_program(), *words), timeout=timeout, check=False)
        return Ran(done.status, done.output)

    def _lost(self, said: str) -> LostConnection:
        last = said.strip().rpartition("\n")[2] or "the connection broke"
        why, remedy = self.trouble() or (last, "see `adb devices`")
        return LostConnection(f"{self.name} cannot be reached by adb: {why}", remedy)
