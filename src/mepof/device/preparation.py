"""What is set on a machine before it measures: data files under ``preparations/``.

A file says what to set, not how it is undone: that follows from what was there before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mepof.described import read_described
from mepof.device.shell import NOT_FOUND, Refused, Shell
from mepof.errors import InputError

_DIRECTORY = Path(__file__).with_name("preparations")
_ANSWER = 60.0
# Files such as transparent_hugepage/enabled list the choices, with the one in force in brackets.
_CHOSEN = re.compile(r"(?:^|\s)\[([^\]\s]+)\](?:\s|$)")
_ANY = "*"


@dataclass(frozen=True)
class Setting:
    """One value of a machine: that of a file, or what a command tells and others set.

    Attributes:
        what: it is, for people.
        path: of the file; empty where commands are used.
        read: command that prints the value.
        write: the command that sets each value; ``*`` is for those that have none of their own,
            with ``{value}`` in it.
    """

    what: str
    path: str = ""
    read: tuple[str, ...] = ()
    write: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """What tells it apart from others."""
        return self.path or " ".join(self.read)

    def get(self, shell: Shell) -> str | None:
        """The value now, or None if the machine has nothing of the kind."""
        if self.path:
            text = shell.read(self.path)
            if text is None:
                return None
            chosen = _CHOSEN.search(text)
            return chosen[1] if chosen else text.strip()
        told = shell.run(self.read, _ANSWER)
        # `systemctl is-active` fails where it says `inactive`.
        unclear = told.status == NOT_FOUND or (_ANY in self.write and told.status != 0)
        value = told.output.strip()
        return None if unclear or not value or "\n" in value else value

    def takes(self, value: str) -> bool:
        """Whether there is a way to set that value."""
        return bool(self.path) or value in self.write or _ANY in self.write

    def put(self, shell: Shell, value: str) -> None:
        """Set the value.

        Raises:
            Refused: the machine did not take it.
        """
        if self.path:
            shell.write(self.path, value)
            return
        command = self.write.get(value, self.write.get(_ANY, ()))
        done = shell.run([word.replace("{value}", value) for word in command], _ANSWER)
        if done.status != 0:
            said = done.output.strip().rpartition("\n")[2] or f"status {done.status}"
            raise Refused(f"`{' '.join(command)}` failed: {said}")


@dataclass(frozen=True)
class Due:
    """A setting of a machine, and what becomes of it.

    Attributes:
        only: the values that are changed; any if it is empty.
    """

    setting: Setting
    value: str
    only: tuple[str, ...] = ()
    cuts_network: bool = False


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wanted(_Described):
    """An entry ``[[setting]]``: some settings, and the value that they are to have.

    Attributes:
        each: the entry holds for each of these words, which stand for ``{each}`` in it.
        path: of a file, or a pattern of files.
        value: to set.
        beside: instead of a value, the name of a file beside the one to set, which holds it.
        only: the values that are changed; any if it is empty.
        cuts_network: not where the network is how the machine is reached.
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

    def due(self, shell: Shell) -> list[Due]:
        """The settings that the machine may have of it."""
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


class Reboot(_Described):
    """How a machine is booted again, and how it says that it is up.

    Attributes:
        command: that does it; it need not return.
        ready: command that prints ``answer`` when the system is up.
    """

    command: tuple[str, ...]
    ready: tuple[str, ...]
    answer: str


class Preparation(_Described):
    """What a kind of machine is prepared by.

    Attributes:
        title: the kind, in running text.
        source: where the settings are from.
        cores: the kind of cores to run on, where there are several.
        reboot: None where there is no way back after one.
        setting: in the order in which they are made; they are undone in reverse.
    """

    title: str
    source: str
    cores: Literal["fastest", "slowest"] = "fastest"
    reboot: Reboot | None = None
    setting: tuple[Wanted, ...]


def preparation_names() -> tuple[str, ...]:
    """Every kind that comes with mepof, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))


def load_preparation(kind: str) -> Preparation:
    """The preparation of a kind of machine, by its name or as a file ``….toml``.

    Raises:
        InputError: there is none, or it is wrong.
    """
    path = Path(kind) if kind.endswith(".toml") else _DIRECTORY / f"{kind}.toml"
    if not kind.endswith(".toml") and not path.is_file():
        known = ", ".join(preparation_names())
        raise InputError(f"unknown kind of machine `{kind}`", f"known: {known}; or a file .toml")
    return read_described(path, Preparation, "preparation")


@dataclass(frozen=True)
class Cores:
    """CPUs of one kind, by their numbers."""

    numbers: tuple[int, ...]

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs a program on them alone, and all that it starts."""
        mask = sum(1 << number for number in self.numbers)
        return ("taskset", f"{mask:x}", *argv)


def cores_of(shell: Shell, kind: Literal["fastest", "slowest"]) -> Cores:
    """The cores of a kind: those that have the same capacity, or else the same top frequency.

    Raises:
        Refused: the machine does not say which CPUs it has.
    """
    online = cpu_numbers(shell.read("/sys/devices/system/cpu/online") or "")
    if not online:
        raise Refused(f"{shell.name} does not say which CPUs are online")
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        told = {n: shell.read(f"/sys/devices/system/cpu/cpu{n}/{name}") for n in online}
        speeds = {n: int(text) for n, text in told.items() if text and text.strip().isdecimal()}
        if len(speeds) == len(online):
            wanted = (max if kind == "fastest" else min)(speeds.values())
            return Cores(tuple(n for n in online if speeds[n] == wanted))
    return Cores(online)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """The CPUs of a list such as ``0-3,6``."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            found += range(int(first), int(last or first) + 1)
    return tuple(found)
