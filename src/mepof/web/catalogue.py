"""The runs below one directory, from their journals; what was read once is not read again."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from mepof.plan.follow import FollowedJournal
from mepof.plan.journal import FILE_NAME, JournalledRun, in_use

#: ``killed``: it has no end in its journal, and no process holds the journal.
State = Literal["running", "done", "failed", "interrupted", "killed"]

RUN_ID = re.compile(r"[0-9a-f]{12}")

# Output directories of `mepof watch` lie this deep; deeper trees are not ours.
_MAX_DEPTH = 4
_REFRESH_SECONDS = 0.2
# Directories change less often than journals, and finding them costs more.
_DISCOVER_SECONDS = 1.0


@dataclass(frozen=True)
class Entry:
    """A run and where it is.

    Attributes:
        out: its output directory; ``name`` is the same, relative to the served directory.
        latest: whether it is the last run of its directory, whose files are this run's.
    """

    run: JournalledRun
    out: Path
    name: str
    state: State
    latest: bool

    @property
    def alive(self) -> bool:
        """Whether it is under way."""
        return self.state == "running"

    @cached_property
    def made(self) -> int:
        """How many steps have their artifact."""
        return sum(step.state in ("done", "cached") for step in self.run.steps.values())

    @property
    def total(self) -> int:
        """How many steps there are, as far as is known."""
        return max(len(self.run.planned), len(self.run.steps))


class Catalogue:
    """The runs; safe to use from several threads.

    Args:
        root: the directory; it may not exist yet.
        clock: seconds from any start.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root.absolute()
        self._clock = clock
        self._lock = threading.Lock()
        self._journals: dict[Path, FollowedJournal] = {}
        self._entries: dict[Path, tuple[tuple[JournalledRun, ...], bool, tuple[Entry, ...]]] = {}
        self._discovered = self._refreshed = clock() - 10 * _DISCOVER_SECONDS
        self._all: Mapping[str, Entry] = {}

    def entries(self, fresh: bool = False) -> Mapping[str, Entry]:
        """Every run by its id, the one that started last first.

        Args:
            fresh: as of now; otherwise they may be a fifth of a second old.
        """
        with self._lock:
            now = self._clock()
            if fresh or now - self._refreshed >= _REFRESH_SECONDS:
                self._refresh(now)
            return self._all

    def find(self, identifier: str, fresh: bool = False) -> Entry | None:
        """A run by its id; ``fresh`` as of :meth:`entries`."""
        if not RUN_ID.fullmatch(identifier):
            return None
        found = self.entries(fresh).get(identifier)
        if found is None:  # it may have begun a moment ago
            with self._lock:
                self._discovered -= 2 * _DISCOVER_SECONDS
                self._refresh(self._clock())
                return self._all.get(identifier)
        return found

    def _refresh(self, now: float) -> None:
        if now - self._discovered >= _DISCOVER_SECONDS:
            paths = set(_journals(self.root, _MAX_DEPTH))
            self._journals = {
                path: self._journals.get(path) or FollowedJournal(path) for path in sorted(paths)
            }
            self._entries = {p: e for p, e in self._entries.items() if p in paths}
            self._discovered = now
        changed = False
        for path, journal in self._journals.items():
            runs = journal.runs()
            # Only the last one can be under way: an earlier one without an end was killed.
            alive = any(run.state == "running" for run in runs) and in_use(path)
            known = self._entries.get(path)
            if known is None or known[0] != runs or known[1] != alive:
                self._entries[path] = (runs, alive, tuple(self._made(path, runs, alive)))
                changed = True
        if changed or len(self._all) != sum(len(e) for _, _, e in self._entries.values()):
            found = sorted(
                (entry for _, _, entries in self._entries.values() for entry in entries),
                key=lambda entry: (entry.run.started, entry.run.id),
                reverse=True,
            )
            self._all = {e.run.id: e for e in reversed(found) if RUN_ID.fullmatch(e.run.id)}
            self._all = dict(reversed(self._all.items()))
        self._refreshed = now

    def _made(self, path: Path, runs: tuple[JournalledRun, ...], alive: bool) -> Iterator[Entry]:
        name = path.parent.relative_to(self.root).as_posix()
        name = name if name != "." else self.root.name
        for run in runs:
            state: State = run.state
            if state == "running" and not alive:
                state = "killed"
            yield Entry(run, path.parent, name, state, latest=run is runs[-1])


def _journals(directory: Path, depth: int) -> Iterator[Path]:
    """The journals in a directory and below it; links are not followed."""
    try:
        with os.scandir(directory) as found:
            items = list(found)
    except OSError:
        return
    for item in items:
        if item.name == FILE_NAME and item.is_file(follow_symlinks=False):
            yield directory / FILE_NAME
        elif depth and not item.name.startswith(".") and item.is_dir(follow_symlinks=False):
            yield from _journals(directory / item.name, depth - 1)
