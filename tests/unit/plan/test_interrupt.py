"""Signals end a run."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mepof.plan.interrupt import stop_on_signals


def test_the_first_signal_is_taken_and_the_second_has_its_usual_effect() -> None:
    cancel = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stop_on_signals(cancel):
        os.kill(os.getpid(), signal.SIGTERM)
        assert cancel.is_set()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before
