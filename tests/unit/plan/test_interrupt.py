"""Signals end a run, and what it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof.errors import Interrupted
from mepof.plan.interrupt import ended_by_sigterm, stop_on_signals
from mepof.process import run


@pytest.fixture(autouse=True)
def _usual_effects() -> Iterator[None]:
    """The handlers of a program that has set none: shells have background jobs ignore SIGINT."""
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    end = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)


def test_the_first_signal_is_taken_and_the_second_has_its_usual_effect() -> None:
    cancel = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stop_on_signals(cancel):
        os.kill(os.getpid(), signal.SIGTERM)
        assert cancel.is_set()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_was_started_ends_with_sigterm(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    program = ["sh", "-c", f"sleep 60 & echo $! > {started}; wait"]

    def end_us() -> None:
        while not (started.is_file() and started.read_text().strip()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(target=end_us, daemon=True).start()
    with pytest.raises(Interrupted, match="ended by SIGTERM"), ended_by_sigterm():
        run(program)
    assert signal.getsignal(signal.SIGTERM) == before
    stat = Path("/proc") / started.read_text().strip() / "stat"
    deadline = time.monotonic() + 10
    with contextlib.suppress(FileNotFoundError):
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.01)
