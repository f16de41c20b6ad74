"""What a source of kernels is: it reads an address, settles what moves, and fetches a tree."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mepof.errors import InputError, Interrupted
from mepof.registry import Registry
from mepof.toolchain.protocol import Run

#: What an address leaves open and a plan states: the commit of a branch, the version of a package.
Pin = Mapping[str, str]

FORMS = (
    "name a directory, a tarball, git+URL#tag=NAME, an https:// URL of a tarball with #sha256=…, "
    "debian:linux-source-N.M, or repo+URL#branch=NAME"
)


@dataclass(frozen=True)
class Workshop:
    """What fetching works with.

    Attributes:
        cache: directory of what runs share: downloads by content, the git mirror.
        work: scratch directory, kept while the same fetch is unfinished.
        run: runs a program like :func:`mepof.process.run`.
        note: shows the user a line.
        cancel: set to stop; ends a wait too.
        progress: shows how far a download has come: done, total if known, unit.
    """

    cache: Path
    work: Path
    run: Run
    note: Callable[[str], None]
    cancel: threading.Event
    progress: Callable[[int, int | None, str], None]

    def wait(self, seconds: float) -> None:
        """Wait before another attempt.

        Raises:
            Interrupted: ``cancel`` was set.
        """
        if self.cancel.wait(seconds):
            raise Interrupted("interrupted")


@contextmanager
def locked(path: Path, workshop: Workshop, what: str) -> Iterator[None]:
    """Hold a lock file against other runs.

    Args:
        what: what another run does while it holds the lock, for the user who waits.

    Raises:
        Interrupted: the run was stopped while waiting.
    """
    with path.open("w") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    workshop.note(f"waiting: {what}")
                told = True
                workshop.wait(0.2)
        yield


class Source(Protocol):
    """One kind of source. An address is the text of a program."""

    def reads(self, address: str) -> bool:
        """Whether an address is of this kind, by its form alone."""

    def parse(self, address: str) -> None:
        """Check the form of an address; reads no file.

        Raises:
            InputError: it is malformed.
        """

    def host(self, address: str) -> str | None:
        """The file or directory of this machine that it names, which is identified by content."""

    def check(self, address: str) -> None:
        """Look at the files of this machine that it names; no server is asked.

        Raises:
            InputError: one does not exist, or is not what it should be.
        """

    def pin(self, address: str, workshop: Workshop) -> Pin:
        """Settle what the address leaves open. May ask servers; says what moves.

        Raises:
            InputError: a server does not have it.
            WorkError: a server does not answer.
        """

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        """Everything else on this machine that decides what is fetched, such as keyrings.

        Raises:
            EnvironmentLack: something is missing.
        """

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        """Lay out the tree in ``output``, an empty directory.

        Raises:
            InputError: what was fetched is not what the address says.
            EnvironmentLack: a program or key is missing.
            WorkError: a server does not answer.
        """


SOURCES: Registry[Source] = Registry("mepof.source", "SOURCE", "source", Source)


def source_of(address: str) -> Source:
    """The kind of source that reads an address.

    Raises:
        InputError: none does.
        EnvironmentLack: none does, and one of another distribution cannot be used.
    """
    for variant in SOURCES.all().values():
        if variant.reads(address):
            return variant
    for lack in SOURCES.unusable().values():
        raise lack
    raise InputError(f"`{address}` is not a kernel source that mepof can fetch", FORMS)


def parse(address: str) -> None:
    """Check the form of an address.

    Raises:
        InputError: no source reads it, or it is malformed.
    """
    source_of(address).parse(address)
