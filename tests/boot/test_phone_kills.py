"""A program that flashes a phone is killed and run again: real mepof, a played system."""

from __future__ import annotations

import random
import shutil

import pytest
from writers.played_host import host, killed

from mepof.executor.protocol import Finished
from mepof.plan.store import default_store

pytestmark = [
    pytest.mark.boot,
    pytest.mark.patient,
    pytest.mark.skipif(shutil.which("fastboot") is None, reason="fastboot is not installed"),
]


def test_a_killed_program_leaves_a_phone_that_starts_and_can_be_run_again(
    finished: Finished,
) -> None:
    steps = finished.run.steps
    plain, image = (steps[f"{name}/build"].path / "kernel" for name in ("plain", "opt"))
    whole = None
    for number in range(4):
        with host(default_store(), plain) as made:
            text = f"set device phone. set seed 1. flash {image}."
            (made.root / "program.g4").write_text(text)
            if whole is None:
                whole, _ = made.run()
            else:
                killed(made, random.Random(number).uniform(0.2, 1) * whole)
