"""Work that is killed at a call of a function, so that each of its moments can be the one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def calls_of(work: Callable[[], object]) -> int:
    """How many functions the work calls."""
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def killed_at(work: Callable[[], object], last: int) -> bool:
    """Work in another process, which is killed at its n-th call of a function; whether it was."""
    if (child := os.fork()) == 0:
        calls = 0

        def count(*event: object) -> None:
            nonlocal calls
            calls += 1
            if calls == last:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
