"""How far the running steps are, in a file beside the journal, for whoever watches a run.

``progress.json`` exists while a run is under way and holds the latest progress of each running
step. It is a few hundred bytes, is replaced a few times a second at most, and nothing depends on
it: a disk that is full is no reason to end a run.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mepof.events import (
    Event,
    StepFailed,
    StepFinished,
    StepNote,
    StepProgress,
    StepStarted,
)

FILE_NAME = "progress.json"

_INTERVAL_SECONDS = 0.2
_MAX_BYTES = 1 << 20


def _later(seconds: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


class ProgressFile:
    """Keeps the file; safe to use from several threads.

    Args:
        out: the run's output directory.
        clock: seconds from any start.
        later: calls a function after some seconds.
    """

    def __init__(
        self,
        out: Path,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] = _later,
    ) -> None:
        self._path = out / FILE_NAME
        self._clock = clock
        self._later = later
        self._lock = threading.Lock()
        self._written = clock() - _INTERVAL_SECONDS
        self._waiting = self._closed = False
        self._steps: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Take an event of the run."""
        with self._lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case StepProgress():
                self._steps[event.step] = completion(event)
            case StepNote() if event.step in self._steps:
                self._steps[event.step] = event.text
            case StepStarted():
                self._steps[event.step] = ""
            case StepFinished() | StepFailed():
                self._steps.pop(event.step, None)
            case _:
                return
        passed = self._clock() - self._written
        if passed >= _INTERVAL_SECONDS:
            self._write()
        elif not self._waiting:
            # It may be the last event for a long time.
            self._waiting = True
            self._later(_INTERVAL_SECONDS - passed, self._catch_up)

    def close(self) -> None:
        """Remove the file."""
        with self._lock, contextlib.suppress(OSError):
            self._closed = True
            self._path.unlink(missing_ok=True)

    def _catch_up(self) -> None:
        with self._lock:
            self._waiting = False
            if not self._closed:
                self._write()

    def _write(self) -> None:
        self._written = self._clock()
        fresh = self._path.with_name(f".{FILE_NAME}.{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                fresh.write_text(json.dumps(self._steps), encoding="utf-8")
                fresh.replace(self._path)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise


def completion(event: StepProgress) -> str:
    """Progress in words, such as ``1,204 of 2,400 files (50 %)``."""
    done = f"{event.done:,} {event.unit}"
    if event.total:
        done = f"{event.done:,} of {event.total:,} {event.unit}"
        done += f" ({100 * event.done // event.total} %)"
    return f"{done} {event.text}" if event.text else done


def read_progress(out: Path) -> Mapping[str, str]:
    """The latest progress of each running step in words; empty if nothing is known."""
    try:
        with (out / FILE_NAME).open("rb") as file:
            steps = json.loads(file.read(_MAX_BYTES))
        return {str(step): str(text) for step, text in steps.items()}
    except (OSError, ValueError, AttributeError):
        return {}
