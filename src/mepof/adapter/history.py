"""What watching has seen and done: an SQLite file that survives ``kill -9`` and two watchers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mepof.adapter.feed.protocol import Release
from mepof.errors import InputError

#: ``earlier``: was there when watching began. ``new`` and ``retry`` are to be processed;
#: ``running`` was, when its watcher ended.
State = Literal["earlier", "new", "running", "retry", "published", "held"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS feeds (
    follow TEXT PRIMARY KEY, memory TEXT NOT NULL, failures INTEGER NOT NULL, next_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS releases (
    follow TEXT NOT NULL, name TEXT NOT NULL, address TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0, seen_at TEXT NOT NULL, ended_at TEXT,
    position INTEGER NOT NULL,
    PRIMARY KEY (follow, name)
);
"""


@dataclass(frozen=True)
class Entry:
    """A release in the history.

    Attributes:
        reason: why it was held back or is to be tried again.
        attempts: how often it was begun.
        next_at: before which it is not tried again, in seconds since the epoch.
        seen_at: ISO 8601 in UTC; so is ``ended_at``.
    """

    follow: str
    name: str
    address: str
    state: State
    reason: str
    attempts: int
    next_at: float
    seen_at: str
    ended_at: str | None


@dataclass(frozen=True)
class Memory:
    """What is known of a feed: what it gave, its failures in a row, and when to ask again."""

    memory: str = ""
    failures: int = 0
    next_at: float = 0.0


class History:
    """The file; each change is one transaction.

    Raises:
        InputError: it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as database:
                database.executescript(_SCHEMA)
        except (OSError, sqlite3.DatabaseError) as error:
            raise InputError(f"the history {path} cannot be used: {error}") from error

    def memory(self, follow: str) -> Memory:
        """What is known of a feed."""
        with self._open() as database:
            row = database.execute(
                "SELECT memory, failures, next_at FROM feeds WHERE follow = ?", (follow,)
            ).fetchone()
        return Memory(*row) if row else Memory()

    def failed(self, follow: str, next_at: float) -> None:
        """A feed did not answer."""
        with self._open() as database:
            database.execute(
                "INSERT INTO feeds VALUES (?, '', 1, ?) ON CONFLICT (follow) DO UPDATE"
                " SET failures = failures + 1, next_at = excluded.next_at",
                (follow, next_at),
            )

    def saw(
        self, follow: str, releases: Iterable[Release], memory: str, next_at: float, now: str
    ) -> list[str]:
        """A feed answered; of a first answer only the newest release is to be processed.

        Returns:
            the names of what is to be processed now and was not known.
        """
        given = list(releases)
        with self._open() as database:
            count = "SELECT COUNT(*) FROM releases WHERE follow = ?"
            first = database.execute(count, (follow,)).fetchone()[0] == 0
            added = []
            for position, release in enumerate(given):
                state: State = "earlier" if first and position + 1 < len(given) else "new"
                done = database.execute(
                    "INSERT OR IGNORE INTO releases (follow, name, address, state, seen_at,"
                    " position) VALUES (?, ?, ?, ?, ?, ?)",
                    (follow, release.name, release.address, state, now, position),
                )
                if done.rowcount and state == "new":
                    added.append(release.name)
            # In the same transaction: what was seen and what is remembered agree.
            database.execute(
                "INSERT INTO feeds VALUES (?, ?, 0, ?) ON CONFLICT (follow) DO UPDATE"
                " SET memory = excluded.memory, failures = 0, next_at = excluded.next_at",
                (follow, memory, next_at),
            )
        return added

    def due(self, now: float) -> list[Entry]:
        """What is to be processed: first what a killed watcher began, then by age."""
        return [
            entry
            for entry in self.entries()
            if entry.state in ("running", "new")
            or (entry.state == "retry" and entry.next_at <= now)
        ]

    def begun(self, entry: Entry) -> None:
        """A release is processed now."""
        self._set(entry, "running", "attempts = attempts + 1, reason = ''", ())

    def ended(
        self, entry: Entry, state: State, reason: str, now: str, next_at: float = 0.0
    ) -> None:
        """A release was published or held back, or is to be tried again."""
        assert state in get_args(State)
        self._set(entry, state, "reason = ?, ended_at = ?, next_at = ?", (reason, now, next_at))

    def entries(self) -> list[Entry]:
        """Every release, the oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT follow, name, address, state, reason, attempts, next_at, seen_at, ended_at"
                " FROM releases ORDER BY state != 'running', seen_at, follow, position"
            ).fetchall()
        return [Entry(*row) for row in rows]

    def _set(self, entry: Entry, state: State, more: str, values: tuple[object, ...]) -> None:
        with self._open() as database:
            database.execute(
                f"UPDATE releases SET state = ?, {more} WHERE follow = ? AND name = ?",
                (state, *values, entry.follow, entry.name),
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30)) as database:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                yield database
