"""An algorithm of two rounds, each of which is built, booted and trained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.process import run
from mepof.profile.artifact import ProfileDescription
from mepof.toolchain.protocol import select

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

PROGRAM = "set seed 1.\nopt debian:linux-source-6.12 cspgo rand kbench O2.\n"


def test_the_second_round_counts_in_a_kernel_that_the_first_optimised(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    plan = plan_of(Source("rounds.g4", PROGRAM))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    first = BuildDescription.read(steps["opt/instrument"].path)
    second = BuildDescription.read(steps["opt/instrument2"].path)
    uses = "-fprofile-use=mepof-profiles/kernel.csprofdata"
    assert "-fprofile-generate" in first.cflags and uses not in first.cflags
    assert "-fcs-profile-generate" in second.cflags and uses in second.cflags
    # The last build, with the counts of both rounds, booted and checked itself.
    safety = Safety.read(steps["opt/build"].path)
    assert (safety.booted, safety.failure) == (True, None)
    assert ProfileDescription.read(steps["opt/profile2"].path).algorithm == "cspgo"
    counted = {
        step: functions_in_context(steps[step].path / "kernel.csprofdata")
        for step in ("opt/profile", "opt/profile2")
    }
    assert counted["opt/profile"] == 0
    assert counted["opt/profile2"] > 1000


def functions_in_context(profile: Path) -> int:
    """How many functions have counts that were made after inlining."""
    profdata = select("clang").tool("profile-merger")
    shown = run([profdata, "show", "--showcs", profile]).output
    (number,) = re.findall(r"^Total functions: (\d+)", shown, re.M)
    return int(number)
