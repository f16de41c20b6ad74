"""Removing from the store of this machine what no run has used for some time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from stat import S_ISREG

from mepof.errors import Interrupted
from mepof.plan.digest import walk
from mepof.plan.store import Store

# Artifacts of a run that is under way were used when it began.
MIN_AGE = timedelta(days=1)


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be.

    Attributes:
        artifacts: how many artifacts.
        unfinished: how many directories of steps that never finished.
        size: bytes of both.
        kept: how many artifacts stay.
    """

    artifacts: int
    unfinished: int
    size: int
    kept: int


def prune(store: Store, keep: timedelta, now: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove artifacts that no run used within ``keep``, and what unfinished steps left before.

    Actions stay, and say what an artifact was and how long it took. Runs may go on meanwhile: one
    that finds an action without its artifact makes it again.

    Args:
        store: an open one.
        keep: at least a day, so that a run keeps what it uses.
    """
    oldest = (now - max(keep, MIN_AGE)).timestamp()
    used = store.used()
    artifacts = list((store.root / "objects").iterdir())
    unused = [path for path in artifacts if (used.get(path.name) or _changed(path)) < oldest]
    work = [path for path in (store.root / "work").iterdir() if path.is_dir()]
    abandoned = [path for path in work if _last_change(path) < oldest]
    size = unfinished = 0
    for path in unused:
        size += _size(path)
        if not dry_run:
            store.discard(path.name)
    for path in _free(store, abandoned):
        unfinished += 1
        size += _size(path)
        if not dry_run:
            store.drop_work(path.name)
    return Pruned(len(unused), unfinished, size, len(artifacts) - len(unused))


def _free(store: Store, directories: list[Path]) -> Iterator[Path]:
    """Those that no run works in, each locked against others for as long as it is looked at."""
    busy = threading.Event()
    for path in directories:
        try:
            with store.lock(path.name, busy.set, busy):
                if path.exists():
                    yield path
        except Interrupted:
            busy.clear()


def _size(directory: Path) -> int:
    """The bytes of the files in a directory; of one that another process removes, none."""
    try:
        return sum(status.st_size for _, _, status in walk(directory) if S_ISREG(status.st_mode))
    except FileNotFoundError:
        return 0


def _last_change(directory: Path) -> float:
    """When something was last made in a directory, or in one of those in it."""
    try:
        return max(map(_changed, (directory, *directory.iterdir())))
    except FileNotFoundError:
        return inf


def _changed(path: Path) -> float:
    """When it was made; never, if another process has just removed it."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return inf
