"""Kills the children of a killed run.

Children have their own process sessions, so a ``make`` survives a ``kill -9`` of mepof and
would keep writing to the scratch directory that the next run takes over. The environment of
every child of a step names that directory, which identifies the child.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "MEPOF_WORK"

_EXIT_LIMIT_MS = 5000
_ROUNDS = 10


def mark_of(work: Path) -> str:
    """What marks the processes of a scratch directory, by whatever links it is named."""
    return os.path.realpath(work)


def end_orphans(work: Path) -> None:
    """Kill every process marked with ``work``; the caller holds the lock of its step."""
    # A round may miss a process that a dying make has just started.
    for _ in range(_ROUNDS):
        handles = list(_marked(f"{MARK}={mark_of(work)}".encode()))
        if not handles:
            return
        for handle in handles:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        for handle in handles:
            waiter = select.poll()
            waiter.register(handle, select.POLLIN)
            waiter.poll(_EXIT_LIMIT_MS)
            os.close(handle)


def _marked(mark: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            handle = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        # Read after opening the handle, so that the pid cannot have been reused.
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            variables = []
        if mark in variables:
            yield handle
        else:
            os.close(handle)
