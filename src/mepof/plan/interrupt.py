"""Ends a run cleanly on SIGINT and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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
