"""Kernels that are built on a kernel with a profile: those of the loop, and of BOLT."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mepof import _engine
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.kernel.safeguard import OptOut
from mepof.kernel.vmlinux import Vmlinux
from mepof.profile.artifact import ProfileDescription
from mepof.toolchain.named import select

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

LOOP = "set seed 1.\nset rounds 2.\nopt debian:linux-source-6.12 autofdo rand kbench O2.\n"


def test_a_loop_profiles_the_kernel_that_uses_its_profile(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    plan = plan_of(Source("loop.g4", LOOP))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    # The second kernel uses the profile of the first, keeps lines, and passed its self-check.
    second = steps["opt/instrument2"].path
    keeping = select("clang").flags("keep-lines")
    assert set(keeping) <= set(BuildDescription.read(second).cflags)
    assert Safety.read(second).self_check == "passed"
    first, new, renewed = (
        steps[f"opt/{step}"].path / "kernel.afdo" for step in ("profile", "profile2", "renew2")
    )
    # So did the last one, which uses what both rounds recorded.
    assert Safety.read(steps["opt/build"].path).self_check == "passed"
    # It runs with fewer instructions, most of them in what the first kernel ran.
    assert totals(new) < totals(first)
    assert overlap(first, new) > 60
    # What the loop knows is the new profile, and half as much of the old one, in its inlining.
    assert totals(renewed) == pytest.approx(1.5 * totals(new), rel=0.02)
    assert overlap(first, renewed) > 95
    known = ProfileDescription.read(renewed.parent)
    assert known.quality.exact
    assert known.build == BuildDescription.read(second).origin


def totals(profile: Path) -> int:
    total: int = json.loads(_engine.show(profile, 1, 0))["statistics"]["total"]
    return total


def overlap(one: Path, other: Path) -> float:
    """The share of execution that two profiles attribute alike, in percent."""
    share: float = json.loads(_engine.compare(one, other, 1))["flow_overlap"]
    return 100 * share


BOLT = "set seed 1.\nopt debian:linux-source-6.12 autofdo+bolt rand kbench O2.\n"


def test_bolt_rewrites_the_kernel_that_autofdo_optimised(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    plan = plan_of(Source("bolt.g4", BOLT))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    linked, rewritten = steps["opt/instrument2"].path, steps["opt/build"].path
    description = BuildDescription.read(rewritten)
    done = description.rewritten
    assert done is not None
    # Nearly everything that ran, and it passed its self-check.
    assert done.functions > 500 and done.functions > 10 * done.alone
    safety = Safety.read(rewritten)
    assert (safety.self_check, safety.opt_out) == ("passed", OptOut())
    # The code is another in the same functions.
    assert description.origin == BuildDescription.read(linked).origin
    before, after = (Vmlinux.read(each / "vmlinux") for each in (linked, rewritten))
    assert before.functions == after.functions
    text = before.sections[".text"]
    assert before.content(text) != after.content(text)
