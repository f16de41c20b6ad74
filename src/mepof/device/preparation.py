"""What is set on a machine before it measures: data files under ``preparations/``.

A file says what to set. How to undo it follows from the former values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from mepof.described import Described
from mepof.device.shell import NOT_FOUND, Files, Reachable, Refused
from mepof.registry import DescribedRegistry

_ANSWER = 60.0
# Files such as transparent_hugepage/enabled list the choices, the current one in brackets.
_CHOSEN = re.compile(r"(?:^|\s)\[([^\]\s]+)\](?:\s|$)")
_ANY = "*"
# The largest kernels have 8,192 CPUs.
_SPAN = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


@dataclass(frozen=True)
class Setting:
    """One value of a machine: the text of a file, or what one command prints and others set.

    Attributes:
        what: its name in messages.
        path: of the file; empty where commands are used.
        read: command that prints the value.
        write: the command that sets each value; ``*`` is for all others, with ``{value}`` in it.
    """

    what: str
    path: str = ""
    read: tuple[str, ...] = ()
    write: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What distinguishes it from others."""
        return self.path or " ".join(self.read)

    def get(self, shell: Reachable) -> str | None:
        """The current value; None if the machine does not have the setting."""
        if self.path:
            text = shell.read(self.path)
            if text is None:
                return None
            chosen = _CHOSEN.search(text)
            return chosen[1] if chosen else text.strip()
        ran = shell.run(self.read, _ANSWER)
        # `systemctl is-active` fails when it prints `inactive`.
        unclear = ran.status == NOT_FOUND or (_ANY in self.write and ran.status != 0)
        value = ran.output.strip()
        return None if unclear or not value or "\n" in value else value

    def takes(self, value: str) -> bool:
        """Whether the value can be set."""
        return bool(self.path) or value in self.write or _ANY in self.write

    def put(self, shell: Reachable, value: str) -> None:
        """Set the value.

        Raises:
            Refused: the machine did not accept it.
        """
        if self.path:
            shell.write(self.path, value)
            return
        command = self.write.get(value, self.write.get(_ANY, ()))
        done = shell.run([word.replace("{value}", value) for word in command], _ANSWER)
        if done.status != 0:
            raise Refused(f"`{' '.join(command)}` failed: {done.last}")


@dataclass(frozen=True)
class Due:
    """A setting of a machine and the value that it gets.

    Attributes:
        only: the former values that are changed; all if it is empty.
        cuts_network: the machine loses its network.
    """

    setting: Setting
    value: str
    only: tuple[str, ...] = ()
    cuts_network: bool = False


class Wanted(Described):
    """An entry ``[[setting]]``: some settings, and the value that they get.

    Attributes:
        each: the entry applies once for each of these words, which replaces ``{each}``.
        path: of a file, or a pattern of files.
        value: to set.
        beside: instead of a value, the name of a file in the same directory that holds it.
        only: the former values that are changed; all if it is empty.
        cuts_network: skipped where the machine is reached by the network.
    """

    what: str
    each: tuple[str, ...] = ("",)
    path: str = ""
    read: tuple[str, ...] = ()
    write: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    value: str = ""
    beside: str = ""
    only: tuple[str, ...] = ()
    cuts_network: bool = False

    @model_validator(mode="after")
    def _is_one_kind(self) -> Wanted:
        if bool(self.path) == bool(self.read) or bool(self.read) != bool(self.write):
            raise ValueError(f"`{self.what}` needs either a path, or commands to read and write")
        if bool(self.value) == bool(self.beside) or (self.beside and not self.path):
            raise ValueError(f"`{self.what}` needs either a value, or a file beside its path")
        if self.read and self.value not in self.write and _ANY not in self.write:
            raise ValueError(f"`{self.what}` has no command that sets `{self.value}`")
        return self

    def due(self, shell: Reachable) -> list[Due]:
        """The settings of the entry that the machine may have."""
        found: list[Due] = []
        for word in self.each:
            what, path = (text.replace("{each}", word) for text in (self.what, self.path))
            for file in shell.paths(path) if path else ():
                value = self.value
                if self.beside:
                    value = (shell.read(str(Path(file).with_name(self.beside))) or "").strip()
                named = what if file == path else f"{what}, {file}"
                if value:
                    found.append(self._due(Setting(named, path=file), value))
            if self.read:
                write = {value: _named(command, word) for value, command in self.write.items()}
                setting = Setting(what, read=_named(self.read, word), write=write)
                found.append(self._due(setting, self.value))
        return found

    def _due(self, setting: Setting, value: str) -> Due:
        return Due(setting, value, self.only, self.cuts_network)


def _named(command: tuple[str, ...], word: str) -> tuple[str, ...]:
    return tuple(part.replace("{each}", word) for part in command)


class Reboot(Described):
    """How a machine is rebooted, and how it shows that it is up.

    Attributes:
        command: that reboots it; it may not return.
        ready: command that prints ``answer`` when the system is up.
        seconds: until it must be up.
    """

    command: tuple[str, ...]
    ready: tuple[str, ...]
    answer: str
    seconds: float = Field(default=300.0, gt=0)


class Preparation(Described):
    """How a kind of machine is prepared.

    Attributes:
        title: the kind, in running text.
        source: of the settings.
        phone: it is reached over adb, and is never the machine that mepof runs on.
        cores: the kind of cores to run on, where there are several.
        reboot: None where the machine cannot be reached again after one.
        setting: in the order in which they are made; they are undone in reverse order.
    """

    title: str
    source: str
    phone: bool = False
    cores: Literal["fastest", "slowest"] = "fastest"
    reboot: Reboot | None = None
    setting: tuple[Wanted, ...]


PREPARATIONS = DescribedRegistry(
    Path(__file__).with_name("preparations"), Preparation, "kind of machine", or_path=True
)


def preparation_names() -> tuple[str, ...]:
    """The kinds that mepof has, sorted."""
    return PREPARATIONS.names()


def load_preparation(kind: str) -> Preparation:
    """The preparation of a kind of machine, by its name or as a file ``….toml``.

    Raises:
        InputError: it does not exist or is not valid.
    """
    return PREPARATIONS.get(kind)


@dataclass(frozen=True)
class Cores:
    """CPUs of one kind, by their numbers."""

    numbers: tuple[int, ...]

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs a program, and all that it starts, on these CPUs alone."""
        mask = sum(1 << number for number in self.numbers)
        return ("taskset", f"{mask:x}", *argv)


def cores_of(files: Files, kind: Literal["fastest", "slowest"]) -> Cores:
    """The cores of a kind: those with the same capacity, or the same maximum frequency where the
    kernel reports no capacity.

    Raises:
        Refused: the machine does not report its CPUs.
    """
    online = cpu_numbers(files.read("/sys/devices/system/cpu/online") or "")
    if not online:
        raise Refused(f"{files.name} does not report which CPUs are online")
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        texts = {n: files.read(f"/sys/devices/system/cpu/cpu{n}/{name}") for n in online}
        speeds = {n: int(text) for n, text in texts.items() if text and text.strip().isdecimal()}
        if len(speeds) == len(online):
            wanted = (max if kind == "fastest" else min)(speeds.values())
            return Cores(tuple(n for n in online if speeds[n] == wanted))
    return Cores(online)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """The CPUs of a list such as ``0-3,6``; parts that are not of that form are left out."""
    found: list[int] = []
    for part in text.strip().split(","):
        if span := _SPAN.fullmatch(part):
            found += range(int(span[1]), int(span[2] or span[1]) + 1)
    return tuple(found)
