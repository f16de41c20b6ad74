"""How far the running steps are, in a file beside the journal, for whoever watches a run.

``progress.json`` exists while a run is under way and holds the latest progress of each running
step. It is a few hundred bytes, is replaced a few times a second at most, and nothing depends on
it: a disk that is full is no reason to end a run.
"""

from __future__ import annotations

import contextlib
import json
import os
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


class ProgressFile:
    """Keeps the file; use it from one thread at a time.

    Args:
        out: the run's output directory.
        clock: seconds from any start.
    """

    def __init__(self, out: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = out / FILE_NAME
        self._clock = clock
        self._written = clock() - _INTERVAL_SECONDS
        self._steps: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Take an event of the run."""
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
        now = self._clock()
        if now - self._written >= _INTERVAL_SECONDS:
            self._written = now
            self._write()

    def close(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
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
