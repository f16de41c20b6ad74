"""A kernel of which as much is instrumented as an image of some size has room for.

It takes up to seven links, of objects that the quickstart has compiled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.kernel.selection import Selection
from mepof.profile.artifact import ProfileDescription

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

KIB = 3400
PROGRAM = f"""\
set seed 1.
set instrument **,{KIB}K.
opt debian:linux-source-6.12 pgo rand kbench O2.
"""


def image_bytes(build: Path) -> int:
    return BuildDescription.read(build).size_bytes.image


def test_a_kernel_boots_within_a_size_that_all_counters_exceed(
    finished: Finished, executor: LocalExecutor, tmp_path: Path
) -> None:
    steps = executor.run(
        plan_of(Source("selective.g4", PROGRAM)), tmp_path / "out", lambda event: None
    ).run.steps
    counting = steps["opt/instrument"].path
    plain, whole = (finished.run.steps[name].path for name in ("plain/build", "opt/instrument"))
    assert image_bytes(plain) < image_bytes(counting) <= KIB << 10 < image_bytes(whole)
    selection = Selection.read(counting)
    assert (selection.limit, selection.image) == (KIB << 10, image_bytes(counting))
    assert selection.time_percent is not None and selection.time_percent > 75
    # It booted and ran the training, and so did the kernel with its profile.
    assert ProfileDescription.read(steps["opt/profile"].path).quality.executed > 500
    safety = Safety.read(steps["opt/build"].path)
    assert (safety.self_check, safety.failure) == ("passed", None)
