"""The journal of a run: which steps ran, why and how long, as lines of JSON.

``journal.jsonl`` is in the run's output directory and is append-only; every run with that
directory appends. The engine waits until a line is on the disk, so that the journal of a
killed run shows what was running. Reports read only the journal and the store.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from mepof.errors import Interrupted, MepofError
from mepof.plan.body import Phase
from mepof.plan.model import Json

FILE_NAME = "journal.jsonl"

StepState = Literal["running", "done", "cached", "failed"]
RunState = Literal["running", "done", "failed", "interrupted"]


@dataclass(frozen=True)
class JournalledStep:
    """The progress of a step.

    Attributes:
        state: ``running`` in the journal of a killed run means that it was cut off.
        reason: why it ran; empty if it was cached.
        digest: of its artifact, once it has one.
        seconds: how long it took; for a cached step, when it was first made.
        started, ended: ISO 8601 in UTC.
        message: of the error, if it failed.
        log: path of its log.
        inputs: the steps whose artifacts it reads.
    """

    step: str
    kind: str
    phase: Phase
    fingerprint: str
    state: StepState
    reason: str = ""
    digest: str | None = None
    seconds: float = 0.0
    started: str | None = None
    ended: str | None = None
    message: str | None = None
    log: str | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedStep:
    """A step of the plan that a run carries out, and the steps whose artifacts it reads."""

    step: str
    kind: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class JournalledRun:
    """One run of a program.

    Attributes:
        id: unique in the journal.
        program: the G4 text.
        tools: identities from the step bodies, by tool.
        versions: of mepof, Python and the host's kernel.
        store: root of the store.
        state: ``running`` in the journal of a killed run means that it was cut off.
        message: of the error that ended it, if any.
        steps: by id, in order of their first event.
        planned: every step of the plan, in its order; empty in journals of earlier versions.
        pid: of the process that runs it; None in journals of earlier versions.
        directory: in which it runs, and from which its program's relative paths begin; None in
            journals of earlier versions.
    """

    id: str
    program: str
    seed: int
    tools: Mapping[str, str]
    versions: Mapping[str, str]
    store: str
    cores: int
    started: str
    ended: str | None = None
    state: RunState = "running"
    message: str | None = None
    steps: Mapping[str, JournalledStep] = field(default_factory=dict)
    planned: tuple[PlannedStep, ...] = ()
    pid: int | None = None
    directory: str | None = None


class Journal:
    """Appends the lines of one run; safe to use from several threads.

    While it is open, it holds a shared lock on the file, so that readers can tell a run that is
    under way from one that was killed (:func:`in_use`).

    Args:
        out: the run's output directory, which must exist.
    """

    def __init__(self, out: Path) -> None:
        self.path = out / FILE_NAME
        self._run = secrets.token_hex(6)
        self._lock = threading.Lock()
        self._file: IO[bytes] = self.path.open("a+b", buffering=0)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._file, fcntl.LOCK_SH)
        self._torn = self._last_line_is_torn()

    def write(self, event: str, *, sync: bool = True, **fields: Json) -> None:
        """Append one event, with the time.

        Args:
            sync: wait until it is on the disk; otherwise it survives a crash of mepof, but not
                one of the machine.
        """
        line = json.dumps({"run": self._run, "event": event, "time": utc_now(), **fields})
        # A single write, so that lines of two runs in one directory do not interleave.
        data = line.encode() + b"\n"
        with self._lock:
            if self._torn:
                data = b"\n" + data
            self._torn = self._file.write(data) != len(data)
            if self._torn:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            if sync:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _last_line_is_torn(self) -> bool:
        if self._file.seek(0, os.SEEK_END) == 0:
            return False
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) != b"\n"


@contextlib.contextmanager
def refusals_noted(out: Path) -> Iterator[None]:
    """Have a run that is refused before it begins be the last in the journal of a directory, if
    there is one: otherwise the results that are there would pass for its own.

    Args:
        out: the run's output directory.
    """
    before = _runs_in(out)
    try:
        yield
    except MepofError as error:
        if before and len(_runs_in(out)) == len(before) and not in_use(out / FILE_NAME):
            with contextlib.suppress(OSError), contextlib.closing(Journal(out)) as journal:
                journal.write(
                    "run", program="", seed=0, tools={}, versions={}, store="", cores=0, sync=False
                )
                # What is wrong with a program is shown with its lines.
                message, *_ = str(error).splitlines() or [""]
                state = "interrupted" if isinstance(error, Interrupted) else "failed"
                journal.write("end", state=state, message=message)
        raise


def _runs_in(out: Path) -> tuple[JournalledRun, ...]:
    try:
        return read_runs(out)
    except (OSError, ValueError):
        return ()


def utc_now() -> str:
    """The current time as journals and actions write it: ISO 8601, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def in_use(path: Path) -> bool:
    """Whether a process that writes the journal is alive.

    Args:
        path: the journal.
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_runs(path: Path) -> tuple[JournalledRun, ...]:
    """The runs in a journal, oldest first; lines that a crash truncated are skipped.

    Args:
        path: the journal, or the output directory that holds it.

    Raises:
        FileNotFoundError: it does not exist.
    """
    runs = RunsInJournal()
    runs.take((path / FILE_NAME if path.is_dir() else path).read_bytes())
    return runs.all()


class RunsInJournal:
    """The runs that the lines of a journal describe, taken in as they come."""

    def __init__(self) -> None:
        self._runs: dict[str, JournalledRun] = {}
        self._steps: dict[str, dict[str, JournalledStep]] = {}
        self._changed: set[str] = set()

    def take(self, data: bytes) -> None:
        """Take in lines; those that are torn or have other contents are skipped."""
        for raw in data.split(b"\n"):
            with contextlib.suppress(
                ValueError, KeyError, TypeError, AttributeError, RecursionError
            ):
                self._apply(json.loads(raw))

    def all(self) -> tuple[JournalledRun, ...]:
        """The runs so far, oldest first; later lines do not change what was returned."""
        for name in self._changed:
            self._runs[name] = replace(self._runs[name], steps=dict(self._steps[name]))
        self._changed.clear()
        return tuple(self._runs.values())

    def _apply(self, line: dict[str, Any]) -> None:
        identifier, event, time = line["run"], line["event"], line["time"]
        if datetime.fromisoformat(time).tzinfo is None:
            raise ValueError
        if event == "run":
            _check_texts(line, "run", "program", "store")
            self._runs[identifier] = JournalledRun(
                identifier,
                line["program"],
                line["seed"],
                line["tools"],
                line["versions"],
                line["store"],
                line["cores"],
                time,
                pid=line.get("pid"),
                directory=line.get("directory"),
            )
            self._steps[identifier] = {}
            return
        run = self._runs[identifier]
        if event == "end":
            self._runs[identifier] = replace(
                run, ended=time, state=line["state"], message=line.get("message")
            )
            return
        if event == "plan":
            planned = tuple(
                PlannedStep(each["step"], each["kind"], tuple(each["inputs"]))
                for each in line["steps"]
            )
            self._runs[identifier] = replace(run, planned=planned)
            return
        _check_texts(line, "step", "kind", "fingerprint")
        steps = self._steps[identifier]
        known = steps.get(line["step"])
        started = time if event == "start" else known.started if known else None
        steps[line["step"]] = JournalledStep(
            line["step"],
            line["kind"],
            line["phase"],
            line["fingerprint"],
            _STATES[event],
            line.get("reason", known.reason if known else ""),
            line.get("digest"),
            float(line.get("seconds", 0.0)),
            started,
            None if event == "start" else time,
            line.get("message"),
            line.get("log"),
            tuple(line.get("inputs", ())),
        )
        self._changed.add(identifier)


def _check_texts(line: dict[str, Any], *keys: str) -> None:
    if not all(isinstance(line[key], str) for key in keys):
        raise TypeError


_STATES: Mapping[str, StepState] = {
    "start": "running",
    "finish": "done",
    "cached": "cached",
    "fail": "failed",
}
