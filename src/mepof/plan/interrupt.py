"""Ends a run cleanly on SIGINT and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from mepof.errors import Interrupted


@contextlib.contextmanager
def stop_on_signals(cancel: threading.Event) -> Iterator[None]:
    """Set ``cancel`` at the first SIGINT or SIGTERM; the second has its usual effect.

    Outside the main thread, which receives the signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        # Signals that have arrived together find this handler, not what it was before.
        nonlocal stopping
        if stopping:
            restore()
            os.kill(os.getpid(), number)
        stopping = True
        cancel.set()

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM raise :class:`Interrupted`, so that programs that were started end, too, and
    scratch directories are removed. Outside the main thread, this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _ended)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ended(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"ended by {signal.Signals(number).name}")
