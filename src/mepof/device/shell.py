"""Reaching the system that runs on a machine: its files, its programs, and a way back to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from mepof.errors import EnvironmentLack, WorkError
from mepof.process import run

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 3

NOT_FOUND = 127
"""Exit status of a program that is not installed, as shells report it."""


class LostConnection(WorkError):
    """The machine no longer answers."""


class Refused(WorkError):
    """The machine did not accept a value."""


@dataclass(frozen=True)
class Ran:
    """How a program ended: its exit status, and standard output and error in order."""

    status: int
    output: str

    @property
    def last(self) -> str:
        """The last line of its output, or its status if it wrote nothing."""
        return self.output.strip().rpartition("\n")[2] or f"status {self.status}"


class Named(Protocol):
    """A machine with a name, the same whenever it is reached; it serves as a file's name."""

    @property
    def name(self) -> str: ...


class Files(Named, Protocol):
    """A machine's files. Every method may raise LostConnection."""

    def read(self, path: str) -> str | None:
        """The text of a file; None if it does not exist or cannot be read."""

    def write(self, path: str, text: str) -> None:
        """Write a line to a file that exists.

        Raises:
            Refused: it does not exist, or does not accept the line.
        """

    def paths(self, pattern: str) -> tuple[str, ...]:
        """The files that match a pattern (``*``, ``?``, ``[…]``), sorted."""


class Shell(Named, Protocol):
    """A machine's programs."""

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        """Run a program to its end; the limit is in seconds.

        Raises:
            WorkError: it did not end in time.
            LostConnection: the machine cannot be reached.
        """


class Recovery(Named, Protocol):
    """A way back to a machine that rebooted or lost its connection."""

    @property
    def option(self) -> str:
        """What chooses the machine on mepof's command line, for messages."""

    @property
    def by_network(self) -> bool:
        """Whether the machine cannot be reached without its network."""

    def reconnect(self) -> None:
        """Try for some seconds to reach the machine again.

        Raises:
            LostConnection: it cannot be reached.
        """


class Reachable(Files, Shell, Recovery, Protocol):
    """A machine that can be prepared: its files, its programs, and a way back to it."""


def persistent(shell: Recovery, act: Callable[P, T], *args: P.args, **words: P.kwargs) -> T:
    """Do something on a machine that may be unreachable for a while."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act(*args, **words)
        except LostConnection:
            shell.reconnect()
    return act(*args, **words)


def machine_of(shell: Reachable) -> str:
    """What tells a machine from others, however it is reached: its machine id if it has one.

    Raises:
        LostConnection: it cannot be reached.
    """
    return (persistent(shell, shell.read, "/etc/machine-id") or "").strip() or shell.name


@dataclass(frozen=True)
class LocalShell:
    """This machine.

    Attributes:
        root: the directory of its files, other than ``/`` in tests and trials.
    """

    root: Path = Path("/")

    @property
    def name(self) -> str:
        return "local"

    @property
    def option(self) -> str:
        return ""

    @property
    def by_network(self) -> bool:
        return False

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        try:
            done = run(argv, timeout=timeout, check=False)
        except EnvironmentLack as error:
            return Ran(NOT_FOUND, error.message)
        return Ran(done.status, done.output)

    def read(self, path: str) -> str | None:
        try:
            return self._at(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        try:
            # A file of the kernel is never created by writing to it.
            handle = os.open(self._at(path), os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(handle, f"{text}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise Refused(f"{path} does not accept `{text}`: {error.strerror}") from error

    def paths(self, pattern: str) -> tuple[str, ...]:
        found = self.root.glob(pattern.lstrip("/"))
        return tuple(sorted(f"/{path.relative_to(self.root)}" for path in found))

    def reconnect(self) -> None:
        pass

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")
