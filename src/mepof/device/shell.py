"""Reaching the system that runs on a machine: its programs and its files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mepof.errors import EnvironmentLack, WorkError
from mepof.process import run

NOT_FOUND = 127
"""Status of a program that is not there, as shells have it."""


class LostConnection(WorkError):
    """The machine does not answer any more."""


class Refused(WorkError):
    """The machine did not take a value."""


@dataclass(frozen=True)
class Ran:
    """What a program left: its exit status, and standard output and error as they came."""

    status: int
    output: str


class Shell(Protocol):
    """A machine's programs and files; whatever is done may raise LostConnection.

    Attributes:
        name: of the machine, the same whenever it is reached; it serves as a file's name.
        option: what chooses the machine on mepof's command line, for messages.
        by_network: without its network the machine is out of reach.
    """

    @property
    def name(self) -> str: ...

    @property
    def option(self) -> str: ...

    @property
    def by_network(self) -> bool: ...

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        """Run a program to its end; the limit is in seconds.

        Raises:
            WorkError: it did not end in time.
        """

    def read(self, path: str) -> str | None:
        """What a file says; None if there is none, or none that can be read."""

    def write(self, path: str, text: str) -> None:
        """Write a line to a file that is there.

        Raises:
            Refused: it is not there, or does not take it.
        """

    def paths(self, pattern: str) -> tuple[str, ...]:
        """The files that match a pattern (``*``, ``?``, ``[…]``), sorted."""

    def reconnect(self) -> None:
        """Try to reach the machine again, for some seconds.

        Raises:
            LostConnection: it cannot be reached.
        """


@dataclass(frozen=True)
class LocalShell:
    """This machine.

    Attributes:
        root: where its files are; another directory than ``/`` is for trying things out.
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
            # A file of the kernel's is never made by writing to it.
            handle = os.open(self._at(path), os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(handle, f"{text}\n".encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise Refused(f"{path} does not take `{text}`: {error.strerror}") from error

    def paths(self, pattern: str) -> tuple[str, ...]:
        found = self.root.glob(pattern.lstrip("/"))
        return tuple(sorted(f"/{path.relative_to(self.root)}" for path in found))

    def reconnect(self) -> None:
        pass

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")
