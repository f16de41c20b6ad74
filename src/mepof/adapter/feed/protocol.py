"""What a feed is: it says which releases there are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from pydantic import Field

from mepof.described import Described, Word
from mepof.kernel.source import KernelVersion
from mepof.registry import Registry
from mepof.source.protocol import Workshop


class Follow(Described):
    """What is followed: a table ``[[follow]]`` of the file.

    Attributes:
        name: of it, in the history and in what is published.
        feed: the kind of feed.
        url: of the repository, or of the list of releases.
        match: shell pattern of the releases that count.
        monikers: of ``kernel-org``: kinds of releases, such as ``stable`` and ``longterm``.
        package: of ``debian``.
        suite: of ``debian``; without it, those of the machine.
        signed_by: the keyring by which each release is verified.
    """

    name: Word
    feed: str
    url: str | None = None
    match: str = "*"
    monikers: tuple[str, ...] = ()
    package: str | None = None
    suite: str | None = None
    signed_by: str | None = Field(default=None, alias="signed-by")

    @property
    def selection(self) -> str:
        """Stands for what decides which releases there are: another one has others."""
        said = (self.feed, self.url, self.match, self.monikers, self.package, self.suite)
        return sha256(repr(said).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Release:
    """A release: its name, and the address of its source.

    Attributes:
        version: that its tree must state, where the name tells it.
    """

    name: str
    address: str
    version: KernelVersion | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Seen:
    """What a feed had.

    Attributes:
        releases: all of them, the oldest first; None if nothing has changed since the last time.
        memory: what the feed is given the next time; not empty.
    """

    releases: tuple[Release, ...] | None
    memory: str


class Feed(Protocol):
    """One kind of feed."""

    def check(self, follow: Follow) -> None:
        """Refuse a table that misses what this feed needs, or has what it does not know.

        Raises:
            InputError: it does.
        """

    def signer(self, follow: Follow) -> str | None:
        """The keyring that every release is verified by; None if none is needed."""

    def current(self, follow: Follow, release: Release) -> Release:
        """A release that was found earlier, with the address that the table gives it now: its
        keyring, for instance, may be another one since."""

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        """Ask which releases there are, politely.

        Raises:
            InputError: what is followed does not exist.
            WorkError: the server does not answer.
        """


FEEDS: Registry[Feed] = Registry("mepof.adapter.feed", "FEED", "feed", Feed)


def memory_of(names: Iterable[str]) -> str:
    """What a feed remembers of the releases that it saw."""
    return sha256("\n".join(names).encode()).hexdigest()


_POINT_RELEASE = re.compile(r"v?(\d+\.\d+)\.\d+(?![\d.])")


def branch_of(name: str) -> str:
    """The branch that a release continues: 6.12 of v6.12.95, and the same, empty, of all that are
    not point releases. One follow may have several."""
    form = _POINT_RELEASE.match(name)
    return form[1] if form else ""


# What the name of a release begins to end with while it is not one yet.
_BEFORE = frozenset({"alpha", "beta", "pre", "rc"})


def version_key(name: str) -> tuple[tuple[int, str], ...]:
    """Orders names of releases as people read them: 6.12.9 is before 6.12.10, 6.13-rc2 before
    6.13, and what is made of a release, such as 6.12.9-rt4, after it."""
    parts = re.findall(r"\d+|[A-Za-z]+", name)
    key = [
        (int(part), "") if part.isdigit() else (-1 if part in _BEFORE else 0, part)
        for part in parts
    ]
    return (*key, (0, ""))
