"""From an artifact back to the sources: which step made it, from what, by which commands."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mepof.plan.action import Action
from mepof.plan.store import Store
from mepof.web.reports import DIGEST

_REFRESH_SECONDS = 1.0


@dataclass(frozen=True)
class Origin:
    """A step in the history of an artifact.

    Attributes:
        inputs: by name, the digest and the action that made it; None for files of the user.
        log: of the step; the script of its commands is beside it.
    """

    action: Action
    inputs: Mapping[str, tuple[str, Action | None]]
    log: Path


@dataclass(frozen=True)
class Known:
    """All actions of a store.

    Attributes:
        latest: the last one first.
        made: by the digest of the artifact, the last one first.
        readers: by the digest of an input.
    """

    latest: tuple[Action, ...] = ()
    made: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    readers: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)


class Provenance:
    """The actions of a store, each read once; safe to use from several threads.

    Args:
        clock: seconds from any start.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._looked = clock() - 2 * _REFRESH_SECONDS
        self._stamp = -1
        self._read: dict[str, tuple[int, Action | None]] = {}
        self._known = Known()

    def known(self) -> Known:
        """Every action, as of now."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= _REFRESH_SECONDS:
                self._refresh()
                self._looked = now
            return self._known

    def history(self, action: Action) -> tuple[Origin, ...]:
        """An action and everything before it, the sources first."""
        made = self.known().made
        done: dict[str, Origin] = {}
        pending = [action]
        while pending:
            last = pending[-1]
            inputs = {
                name: (digest, next(iter(made.get(digest, ())), None))
                for name, digest in sorted(last.ingredients.inputs.items())
            }
            # Every digest is of content, so only a damaged store has circles.
            missing = [
                by
                for _, by in inputs.values()
                if by and by.fingerprint not in done and by not in pending
            ]
            if missing:
                pending += missing
                continue
            done[last.fingerprint] = Origin(
                last, inputs, self._store.log(last.step, last.fingerprint)
            )
            pending.pop()
        return tuple(done.values())

    def _refresh(self) -> None:
        directory = self._store.root / "actions"
        try:
            # Every action is renamed into place, which changes the directory.
            stamp = directory.stat().st_mtime_ns
            if stamp == self._stamp:
                return
            read = {}
            for name, changed in _actions(directory):
                known = self._read.get(name)
                if known is None or known[0] != changed:
                    action = self._store.action(name)
                    sane = action is not None and _is_sane(action, name)
                    known = (changed, action if sane else None)
                read[name] = known
        except OSError:
            stamp, read = -1, {}
        self._stamp, self._read = stamp, read
        self._known = _indexed([action for _, action in read.values() if action is not None])


def _actions(directory: Path) -> Iterator[tuple[str, int]]:
    with os.scandir(directory) as found:
        for item in found:
            name, dot, kind = item.name.partition(".")
            if dot and kind == "json" and DIGEST.fullmatch(name):
                yield name, item.stat(follow_symlinks=False).st_mtime_ns


def _is_sane(action: Action, name: str) -> bool:
    """Whether a file that could be read is an action."""
    given = action.ingredients
    return (
        action.fingerprint == name
        and DIGEST.fullmatch(str(action.artifact.digest)) is not None
        and isinstance(given.inputs, dict)
        and isinstance(given.params, dict)
        and isinstance(given.tools, dict)
        and all(isinstance(v, str) for v in (action.step, action.made_at, *given.inputs.values()))
        and isinstance(action.seconds, int | float)
    )


def _indexed(actions: list[Action]) -> Known:
    actions.sort(key=lambda action: (action.made_at, action.fingerprint), reverse=True)
    made: dict[str, list[Action]] = {}
    readers: dict[str, list[Action]] = {}
    for action in actions:
        made.setdefault(action.artifact.digest, []).append(action)
        for digest in set(action.ingredients.inputs.values()):
            readers.setdefault(digest, []).append(action)
    return Known(
        tuple(actions),
        {digest: tuple(found) for digest, found in made.items()},
        {digest: tuple(found) for digest, found in readers.items()},
    )
