"""A kernel whose objects are shared with others has the bytes of one that is compiled alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

PROGRAM = "set share {}.\nrecomp debian:linux-source-6.12 {} O2.\n"


def test_a_kernel_has_the_same_bytes_whether_its_objects_are_shared(
    executor: LocalExecutor, finished: Finished, tmp_path: Path
) -> None:
    profile = finished.run.steps["opt/profile"].path / "kernel.profdata"
    made, shares = set(), set()
    for share in ("on", "off"):
        plan = plan_of(Source(f"{share}.g4", PROGRAM.format(share, profile)))
        shares.add(plan.step("recomp/build").params.get("share", True))
        steps = executor.run(plan, tmp_path / share, lambda event: None).run.steps
        made.add(steps["recomp/build"].digest)
    # The digest is of all that a build leaves.
    assert shares == {True, False} and len(made) == 1
