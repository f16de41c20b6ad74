"""One program, run once: its time and its peak of memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import WorkError


@dataclass(frozen=True)
class Usage:
    """What a process took.

    Attributes:
        seconds: from start to end.
        cpu_seconds: of all its threads, user and system.
        peak_bytes: largest resident set, mapped files with it.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measured(argv: Sequence[str | Path], cores: Sequence[int], log: Path) -> Usage:
    """Run a program on the given cores, its output into a log.

    Not through :mod:`mepof.process`: the peak is that of this one child, which only waiting
    for it by its number tells. The kernel counts what the child was before it became the
    program, too: a copy of this process. That one has to be small (``mepof.errors`` is).

    Raises:
        WorkError: it failed; the message has the log's last line.
    """
    with log.open("wb") as out:
        began = time.perf_counter()
        child = subprocess.Popen(
            [os.fspath(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - began
    # Popen must not wait for it again.
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        raise WorkError(f"{argv[0]} ended with status {child.returncode}: {last}", f"see {log}")
    return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
