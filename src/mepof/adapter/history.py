"""What watching has seen and done: an SQLite file that survives ``kill -9`` and two watchers.

What a feed answered, and how often it failed, is of what the file selected then: see
:attr:`mepof.adapter.feed.protocol.Follow.selection`. It is unknown, and taken for the same, in a
history of an earlier version, which has no table ``selections``.

A change of a release's state, the line of the history that explains it and the messages that tell
of it are one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mepof.adapter.feed.protocol import Release, branch_of
from mepof.errors import InputError, StoreFull, WorkError

#: ``earlier``: was there when watching began. ``new`` and ``retry`` are to be processed;
#: ``running`` was, when its watcher ended.
State = Literal["earlier", "new", "running", "retry", "published", "held"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS feeds (
    follow TEXT PRIMARY KEY, memory TEXT NOT NULL, failures INTEGER NOT NULL, next_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS selections (
    follow TEXT PRIMARY KEY, asked TEXT NOT NULL, answered TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS releases (
    follow TEXT NOT NULL, name TEXT NOT NULL, address TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL DEFAULT 0, seen_at TEXT NOT NULL, ended_at TEXT,
    position INTEGER NOT NULL,
    PRIMARY KEY (follow, name)
);
CREATE TABLE IF NOT EXISTS revisions (
    follow TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (follow, name), UNIQUE (follow, number)
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, follow TEXT NOT NULL, name TEXT NOT NULL, at TEXT NOT NULL,
    what TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (
    id TEXT PRIMARY KEY, target TEXT NOT NULL, body TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, next_at REAL NOT NULL DEFAULT 0
);
"""


@dataclass(frozen=True)
class Entry:
    """A release in the history.

    Attributes:
        reason: why it was held back or is to be tried again.
        attempts: how often in a row it failed for a reason that may pass.
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
class Noted:
    """A line of what happened to a release, at a time in ISO 8601."""

    at: str
    what: str
    text: str


@dataclass(frozen=True)
class Message:
    """A message that is to be delivered.

    Attributes:
        id: the same in every attempt, so that a receiver can tell a repetition.
        target: who gets it, by its name in the file.
        body: JSON.
        attempts: how often it was not delivered.
    """

    id: str
    target: str
    body: str
    attempts: int = 0


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
        WorkError: of every method: it cannot be written, because the disk is full for instance.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as database:
                database.executescript(_SCHEMA)
        except OSError as error:
            raise InputError(f"the history {path} cannot be used: {error.strerror}") from error
        except StoreFull:
            raise
        except WorkError as error:
            raise InputError(error.message, error.remedy) from error

    def memory(self, follow: str, selection: str = "") -> Memory:
        """What is known of a feed, as far as it is of a selection."""
        with self._open() as database:
            row = database.execute(
                "SELECT memory, failures, next_at FROM feeds WHERE follow = ?", (follow,)
            ).fetchone()
            asked, answered = _selections(database, follow)
        memory, failures, next_at = row or ("", 0, 0.0)
        if asked not in ("", selection):
            failures, next_at = 0, 0.0
        return Memory(memory if answered in ("", selection) else "", failures, next_at)

    def answered(self, follow: str, selection: str) -> bool:
        """Whether the releases of a follow are of a selection, not of an earlier one."""
        with self._open() as database:
            return _selections(database, follow)[1] in ("", selection)

    def failed(self, follow: str, failures: int, next_at: float, selection: str) -> None:
        """A feed did not answer, ``failures`` times in a row."""
        with self._open() as database:
            database.execute(
                "INSERT INTO feeds VALUES (?, '', ?, ?) ON CONFLICT (follow) DO UPDATE"
                " SET failures = excluded.failures, next_at = excluded.next_at",
                (follow, failures, next_at),
            )
            database.execute(
                "INSERT INTO selections (follow, asked) VALUES (?, ?)"
                " ON CONFLICT (follow) DO UPDATE SET asked = excluded.asked",
                (follow, selection),
            )

    def saw(
        self,
        follow: str,
        releases: Iterable[Release],
        memory: str,
        next_at: float,
        now: str,
        selection: str = "",
    ) -> list[str]:
        """A feed answered.

        Of a first answer, and of the first of another selection, only the newest release of each
        branch is to be processed; what is not selected any more is not. A release that is known and
        not published has from now on the address that is given.

        Returns:
            the names of what is to be processed now and was not.
        """
        given = list(releases)
        newest = {branch_of(release.name): release for release in given}
        with self._open() as database:
            changed = _selections(database, follow)[1] not in ("", selection)
            first = changed or _is_first(database, follow)
            if changed:
                _leave(database, follow, {release.name for release in given}, now)
            added = []
            for position, release in enumerate(given):
                latest = newest[branch_of(release.name)] == release
                state: State = "earlier" if first and not latest else "new"
                if _add(database, follow, release, state, position, now, chosen=first and latest):
                    added.append(release.name)
            # In the same transaction: what was seen and what is remembered agree.
            database.execute(
                "INSERT INTO feeds VALUES (?, ?, 0, ?) ON CONFLICT (follow) DO UPDATE"
                " SET memory = excluded.memory, failures = 0, next_at = excluded.next_at",
                (follow, memory, next_at),
            )
            database.execute(
                "INSERT OR REPLACE INTO selections VALUES (?, ?, ?)", (follow, selection, selection)
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

    def next_at(self, wanted: Callable[[Entry], bool] = lambda entry: True) -> float | None:
        """When a release that is wanted is to be tried again, or a message to be delivered; None
        if never."""
        with self._open() as database:
            times = [at for (at,) in database.execute("SELECT next_at FROM outbox")]
        entries = (entry for entry in self.entries() if entry.state == "retry")
        return min((*times, *(each.next_at for each in entries if wanted(each))), default=None)

    def begun(self, entry: Entry, now: str) -> None:
        """A release is processed now, from the address that it has in the entry."""
        with self._open() as database:
            _set(database, entry, "running", "reason = '', address = ?", (entry.address,))
            text = "continues after its watcher ended" if entry.state == "running" else ""
            _note(database, entry.follow, entry.name, now, "begun", text)

    def note(self, entry: Entry, now: str, what: str, text: str) -> None:
        """Something that explains what becomes of a release."""
        with self._open() as database:
            _note(database, entry.follow, entry.name, now, what, text)

    def ended(
        self,
        entry: Entry,
        state: State,
        reason: str,
        now: str,
        next_at: float = 0.0,
        messages: Sequence[Message] = (),
    ) -> None:
        """A release was published or held back, or is to be tried again."""
        assert state in get_args(State)
        with self._open() as database:
            added = "reason = ?, ended_at = ?, next_at = ?"
            added += ", attempts = attempts + 1" if state == "retry" else ""
            _set(database, entry, state, added, (reason, now, next_at))
            _note(database, entry.follow, entry.name, now, state, reason)
            database.executemany(
                "INSERT OR IGNORE INTO outbox (id, target, body) VALUES (?, ?, ?)",
                [(each.id, each.target, each.body) for each in messages],
            )

    def again(self, name: str, now: str, follows: Collection[str] | None = None) -> int:
        """Process again what was held back under a name, waits to be tried again, or is from before
        the watch began; returns how many releases those are.

        Args:
            follows: of which alone; None is all.
        """
        with self._open() as database:
            rows = database.execute(
                "SELECT follow FROM releases WHERE name = ? AND state IN ('held', 'earlier',"
                " 'retry')",
                (name,),
            ).fetchall()
            found = [follow for (follow,) in rows if follows is None or follow in follows]
            for follow in found:
                database.execute(
                    "UPDATE releases SET state = 'new', attempts = 0, next_at = 0"
                    " WHERE follow = ? AND name = ?",
                    (follow, name),
                )
                _note(database, follow, name, now, "again", "by hand")
        return len(found)

    def entries(self) -> list[Entry]:
        """Every release, the oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT follow, name, address, state, reason, attempts, next_at, seen_at, ended_at"
                " FROM releases ORDER BY state != 'running', seen_at, follow, position"
            ).fetchall()
        return [Entry(*row) for row in rows]

    def revision(self, entry: Entry) -> int:
        """A number that no other release of the follow has, from 1: a release keeps it, and one
        that is processed later for the first time has a higher one."""
        which = (entry.follow, entry.name)
        with self._open() as database:
            # What earlier versions counted, which kept no numbers.
            database.execute(
                "INSERT INTO revisions SELECT follow, name, row_number() OVER (ORDER BY rowid)"
                " FROM releases WHERE follow = ?1 AND state != 'earlier'"
                " AND NOT EXISTS (SELECT 1 FROM revisions WHERE follow = ?1)",
                which[:1],
            )
            database.execute(
                "INSERT OR IGNORE INTO revisions"
                " SELECT ?1, ?2, 1 + coalesce(max(number), 0) FROM revisions WHERE follow = ?1",
                which,
            )
            (number,) = database.execute(
                "SELECT number FROM revisions WHERE follow = ? AND name = ?", which
            ).fetchone()
        return int(number)

    def events(self, entry: Entry) -> list[Noted]:
        """What happened to a release, the oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT at, what, text FROM events WHERE follow = ? AND name = ? ORDER BY id",
                (entry.follow, entry.name),
            ).fetchall()
        return [Noted(*row) for row in rows]

    def last_published(self, follow: str) -> list[Entry]:
        """The releases that were published, the last first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT name, MAX(id) FROM events WHERE follow = ? AND what = 'published'"
                " GROUP BY name ORDER BY 2 DESC",
                (follow,),
            ).fetchall()
        known = {entry.name: entry for entry in self.entries() if entry.follow == follow}
        return [known[name] for name, _ in rows if name in known]

    def messages(self, now: float) -> list[Message]:
        """The messages that are due."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, target, body, attempts FROM outbox WHERE next_at <= ? ORDER BY rowid",
                (now,),
            ).fetchall()
        return [Message(*row) for row in rows]

    def delivered(self, message: Message) -> None:
        """A message was delivered, or is given up."""
        with self._open() as database:
            database.execute("DELETE FROM outbox WHERE id = ?", (message.id,))

    def postpone(self, message: Message, next_at: float) -> None:
        """A message was not delivered, and is tried again."""
        with self._open() as database:
            database.execute(
                "UPDATE outbox SET attempts = attempts + 1, next_at = ? WHERE id = ?",
                (next_at, message.id),
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as database:
                database.execute("PRAGMA synchronous = FULL")
                with database:
                    yield database
        except sqlite3.DatabaseError as error:
            said = f"the history {self.path} cannot be used: {error}"
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise StoreFull(said, "free some space") from error
            raise WorkError(
                said, "remove the file if it is damaged: what is published stays"
            ) from error


def _selections(database: sqlite3.Connection, follow: str) -> tuple[str, str]:
    """The selection of which a feed was asked last, and that of which it answered last; empty
    where that is unknown."""
    row = database.execute(
        "SELECT asked, answered FROM selections WHERE follow = ?", (follow,)
    ).fetchone()
    return (row[0], row[1]) if row else ("", "")


def _is_first(database: sqlite3.Connection, follow: str) -> bool:
    """Whether a feed has never answered. One that only failed has no memory; one that had no
    release has."""
    (first,) = database.execute(
        "SELECT NOT EXISTS (SELECT 1 FROM releases WHERE follow = ?1) AND NOT EXISTS"
        " (SELECT 1 FROM feeds WHERE follow = ?1 AND memory != '')",
        (follow,),
    ).fetchone()
    return bool(first)


def _leave(database: sqlite3.Connection, follow: str, selected: Collection[str], now: str) -> None:
    """Do not process what was to be, and is not selected any more."""
    rows = database.execute(
        "SELECT name FROM releases WHERE follow = ? AND state IN ('new', 'retry', 'running')",
        (follow,),
    ).fetchall()
    for (name,) in rows:
        if name not in selected:
            database.execute(
                "UPDATE releases SET state = 'earlier' WHERE follow = ? AND name = ?",
                (follow, name),
            )
            _note(database, follow, name, now, "left", "it is not selected any more")


def _add(
    database: sqlite3.Connection,
    follow: str,
    release: Release,
    state: State,
    position: int,
    now: str,
    chosen: bool,
) -> bool:
    """Add a release, or update one that is known.

    Args:
        chosen: process it also if it is there as an earlier one.

    Returns:
        whether it is to be processed now and was not.
    """
    done = database.execute(
        "INSERT OR IGNORE INTO releases (follow, name, address, state, seen_at, position)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (follow, release.name, release.address, state, now, position),
    )
    if done.rowcount:
        _note(database, follow, release.name, now, "found", release.address)
        return state == "new"
    which = (follow, release.name)
    database.execute(
        "UPDATE releases SET address = ? WHERE follow = ? AND name = ? AND state != 'published'",
        (release.address, *which),
    )
    if not chosen:
        return False
    done = database.execute(
        "UPDATE releases SET state = 'new' WHERE follow = ? AND name = ? AND state = 'earlier'",
        which,
    )
    return done.rowcount > 0


def _set(
    database: sqlite3.Connection, entry: Entry, state: State, more: str, values: tuple[object, ...]
) -> None:
    database.execute(
        f"UPDATE releases SET state = ?, {more} WHERE follow = ? AND name = ?",
        (state, *values, entry.follow, entry.name),
    )


def _note(
    database: sqlite3.Connection, follow: str, name: str, now: str, what: str, text: str
) -> None:
    database.execute(
        "INSERT INTO events (follow, name, at, what, text) VALUES (?, ?, ?, ?, ?)",
        (follow, name, now, what, text),
    )
