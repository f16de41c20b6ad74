"""Settling what a plan leaves open."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mepof.errors import Interrupted
from mepof.events import unheard
from mepof.plan.model import Plan, Step
from mepof.plan.pin import Pinning, pinned


def test_a_signal_that_arrives_while_nothing_runs_is_not_lost(tmp_path: Path) -> None:
    def pin(step: Step, pinning: Pinning) -> Step:
        os.kill(os.getpid(), signal.SIGTERM)
        return step

    bodies: Any = {"source": SimpleNamespace(pin=pin)}
    plan = Plan("", 0, (Step("a", "source", {}, {}),), ())
    with pytest.raises(Interrupted):
        pinned(plan, bodies, tmp_path, unheard)
