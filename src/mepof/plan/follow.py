"""Follows a journal while runs append to it: only what is new is read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from mepof.plan.journal import JournalledRun, RunsInJournal

# Of a file this long, the memory for one read stays bounded.
_CHUNK = 1 << 24
_HEAD = 64


class FollowedJournal:
    """A journal and what is known of it. Use it from one thread at a time.

    Args:
        path: the journal; it may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._runs = RunsInJournal()
        self._seen: tuple[int, int, int] | None = None
        self._head = b""
        self._read = 0
        self._rest = b""

    def runs(self) -> tuple[JournalledRun, ...]:
        """The runs as of now, oldest first; none if the journal cannot be read."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                seen = (status.st_ino, status.st_size, status.st_mtime_ns)
                if seen != self._seen:
                    self._take(file, status.st_size)
                    self._seen = seen
        except OSError:
            return ()
        return self._runs.all()

    def _take(self, file: IO[bytes], size: int) -> None:
        # Every first line has a random name of a run: another one is another journal, even if it
        # got the same inode.
        head = file.read(_HEAD)
        if size < self._read or not head.startswith(self._head):
            self._runs, self._read, self._rest = RunsInJournal(), 0, b""
        self._head = head
        file.seek(self._read)
        while data := file.read(_CHUNK):
            self._read += len(data)
            # A line that is being written is taken in once it is whole.
            lines, newline, self._rest = (self._rest + data).rpartition(b"\n")
            self._runs.take(lines + newline)
