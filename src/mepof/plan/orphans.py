"""Ending the children of a run that was killed.

Children live in sessions of their own, so ``kill -9`` of us leaves a running ``make``
behind, which would go on in the scratch directory that the next run takes over. Every
child of a step carries the directory in its environment and is found by it.
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


def end_orphans(work: Path) -> None:
    """End every process that works in ``work``; the caller holds the lock of its step."""
    # A round may miss what a dying make still started.
    for _ in range(_ROUNDS):
        handles = list(_marked(f"{MARK}={work}".encode()))
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
        # Read after the handle was opened, so that the number cannot have changed hands.
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            variables = []
        if mark in variables:
            yield handle
        else:
            os.close(handle)
