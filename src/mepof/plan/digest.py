"""Content digests of files and trees, and a cache that avoids rereading unchanged files.

A tree's digest is the SHA-256 of its sorted entries: kind (with the executable bit),
relative path and content, where the content of a symbolic link is its target. Owners, times
and the other mode bits do not count, so that two builds of the same files are one artifact.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from mepof.errors import InputError, Interrupted

Entry = tuple[str, str, os.stat_result]
"""Path relative to the root, kind (``dir``, ``file``, ``exec``, ``link``, ``other``), status."""

# A file that changed this shortly before it was read may change again without a new
# timestamp (the kernel's clock for files ticks every 1 to 10 ms), so it is not remembered.
_TICK_NS = 100_000_000

# Every `git status` changes files in it, and no build reads it.
_SKIPPED_IN_HOST_TREES = frozenset({".git"})


def kind_of(mode: int) -> str:
    """The kind of an entry, by the mode of its status."""
    if stat.S_ISREG(mode):
        return "exec" if mode & stat.S_IXUSR else "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"


def walk(root: Path, skip: Collection[str] = ()) -> list[Entry]:
    """All entries below a directory, sorted by path, except the top-level ones in ``skip``."""
    entries: list[Entry] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(f"{root}/{prefix}") as found:
            for item in found:
                if not prefix and item.name in skip:
                    continue
                status = item.stat(follow_symlinks=False)
                kind = kind_of(status.st_mode)
                entries.append((prefix + item.name, kind, status))
                if kind == "dir":
                    pending.append(f"{prefix}{item.name}/")
    entries.sort(key=lambda entry: entry[0])
    return entries


def file_digest(path: Path | str) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(root: Path, entries: Sequence[Entry], contents: Mapping[str, str]) -> str:
    """The digest of a tree.

    Args:
        entries: what :func:`walk` found in ``root``.
        contents: the content digest of every regular file by its relative path.
    """
    whole = hashlib.sha256(b"tree\0")
    for relative, kind, _ in entries:
        content = contents.get(relative, "")
        if kind == "link":
            content = str((root / relative).readlink())
        whole.update(os.fsencode(f"{kind}\0{relative}\0{content}\0"))
    return whole.hexdigest()


def listing_digest(entries: Sequence[Entry]) -> str:
    """A cheap digest of a tree's shape: kinds, paths and sizes, without contents."""
    whole = hashlib.sha256()
    for relative, kind, status in entries:
        # The size of a directory depends on the file system.
        size = status.st_size if kind in ("file", "exec", "link") else 0
        whole.update(os.fsencode(f"{kind}\0{size}\0{relative}\0"))
    return whole.hexdigest()


def _silent() -> None:
    pass


class HostDigests:
    """Digests of files and directories on the host, with a cache of file digests.

    A file whose size, times and inode are unchanged is not read again. The cache is an SQLite
    file that any number of processes share; if it is missing or damaged, the digests are the
    same and only take longer.

    Args:
        memory: the SQLite file.
        write: False leaves the cache unchanged (for a dry run).
        now_ns: the clock in nanoseconds that file times are compared with.
    """

    def __init__(
        self, memory: Path, *, write: bool = True, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._memory = memory
        self._write = write
        self._now_ns = now_ns

    def digest(
        self,
        path: Path,
        cancel: threading.Event | None = None,
        reading: Callable[[], None] = _silent,
    ) -> str:
        """The content digest of a file (its SHA-256) or of a directory (without ``.git``).

        Args:
            reading: called once before the first file that is read.

        Raises:
            InputError: it does not exist or cannot be read.
            Interrupted: ``cancel`` was set.
        """
        try:
            real = path.resolve()
            if not real.is_dir():
                status = real.stat()
                if not stat.S_ISREG(status.st_mode):
                    raise InputError(f"{path} is neither a file nor a directory")
                return self._contents(real, [("", "file", status)], cancel, reading)[""]
            entries = walk(real, _SKIPPED_IN_HOST_TREES)
            contents = self._contents(real, entries, cancel, reading)
            return tree_digest(real, entries, contents)
        except FileNotFoundError as error:
            raise InputError(f"{error.filename or path} does not exist") from error
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
            raise InputError(f"{path} cannot be read: {error}") from error

    def _contents(
        self,
        root: Path,
        entries: Sequence[Entry],
        cancel: threading.Event | None,
        reading: Callable[[], None],
    ) -> dict[str, str]:
        known = self._recall(str(root))
        started = self._now_ns()
        contents: dict[str, str] = {}
        notify = reading
        fresh: list[tuple[str, int, int, int, int, str]] = []
        for relative, kind, status in entries:
            if kind not in ("file", "exec"):
                continue
            path = f"{root}/{relative}" if relative else str(root)
            key = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            remembered = known.pop(path, None)
            if remembered is not None and remembered[:4] == key:
                contents[relative] = remembered[4]
                continue
            if cancel is not None and cancel.is_set():
                raise Interrupted("interrupted")
            notify()
            notify = _silent
            contents[relative] = file_digest(path)
            if status.st_ctime_ns < started - _TICK_NS:
                fresh.append((path, *key, contents[relative]))
        if self._write and (fresh or known):
            self._remember(fresh, known)
        return contents

    def _recall(self, root: str) -> dict[str, tuple[int, int, int, int, str]]:
        if not self._memory.exists():
            return {}
        try:
            with contextlib.closing(sqlite3.connect(self._memory, timeout=10)) as database:
                rows = database.execute(
                    # "0" is the character after "/": everything below the root, by the index.
                    "SELECT path, size, mtime, ctime, inode, digest FROM files"
                    " WHERE path = ? OR (path > ? AND path < ?)",
                    (root, f"{root}/", f"{root}0"),
                )
                return {row[0]: row[1:] for row in rows}
        except (sqlite3.Error, UnicodeError):
            return {}

    def _remember(
        self, fresh: list[tuple[str, int, int, int, int, str]], gone: Collection[str]
    ) -> None:
        # A cache that cannot be written (disk full, damaged) must not fail a run.
        try:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._memory, timeout=10)
            with contextlib.closing(connection), connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, size INTEGER,"
                    " mtime INTEGER, ctime INTEGER, inode INTEGER, digest TEXT) WITHOUT ROWID"
                )
                connection.executemany("DELETE FROM files WHERE path = ?", ((p,) for p in gone))
                connection.executemany(
                    "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", fresh
                )
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError):
                with contextlib.suppress(OSError):
                    self._memory.unlink()
        except (OSError, UnicodeError):
            pass
