"""Kernels of User-Mode Linux, without a profile and with one, and the load that they time.

A cold store builds three kernels, in minutes each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.measure.native import cycles_in
from mepof.process import run
from mepof.profile.artifact import ProfileDescription
from mepof.suite.cases import load_suite

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

PROGRAM = """\
set arch um.
set device uml.
set config kload.
set seed 1.
build debian:linux-source-6.12 O2.
opt debian:linux-source-6.12 pgo trav kload O2.
"""
CASES = {case.name for case in load_suite("kload").cases}


@pytest.fixture(scope="module")
def made(executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    plan = plan_of(Source("uml.g4", PROGRAM))
    return executor.run(plan, tmp_path_factory.mktemp("uml"), lambda event: None)


def load_of(made: Finished, build: str, directory: Path, *cases: str) -> str:
    """What a kernel prints that runs the load before its first process, and powers off."""
    words = ["mem=256M", "con=null", "con0=null,fd:1", "uml_dir=.", f"kload={','.join(cases)}"]
    kernel = made.run.steps[build].path / "kernel"
    command = ["setarch", "--addr-no-randomize", str(kernel), *words]
    return run(command, cwd=directory, timeout=300, check=False).output


def sums_in(console: str) -> Mapping[str, str]:
    return dict(re.findall(r"kload: case=(\S+) .* sum=(\d+)", console))


def test_the_kernel_with_a_profile_boots_and_passes_its_check(made: Finished) -> None:
    plain, optimised = (made.run.steps[name].path for name in ("build/build", "opt/build"))
    safety = Safety.read(optimised)
    assert (safety.booted, safety.self_check, safety.failure) == (True, "passed", None)
    assert BuildDescription.read(plain).version == BuildDescription.read(optimised).version
    assert (plain / "kernel").read_bytes() != (optimised / "kernel").read_bytes()
    assert ProfileDescription.read(made.run.steps["opt/profile"].path).algorithm == "pgo"


def test_both_kernels_run_every_case_with_the_same_results(made: Finished, tmp_path: Path) -> None:
    plain, optimised = (
        load_of(made, build, tmp_path, "3") for build in ("build/build", "opt/build")
    )
    for console in (plain, optimised):
        assert set(cycles_in(console)) == CASES
        assert "left out" not in console
    sums = sums_in(plain)
    assert sums == sums_in(optimised)
    # Of the control, and of every case that leaves a file.
    assert {"checksum", "write-1k", "ext4-write-1k", "ext4-fsync"} <= set(sums)
    # What is written does not depend on the file system.
    assert sums["ext4-write-1k"] == sums["write-1k"] != sums["write-64"]


def test_a_case_that_the_kernel_does_not_have_is_an_error(made: Finished, tmp_path: Path) -> None:
    console = load_of(made, "build/build", tmp_path, "1", "ext4-none", "ext4-fsync")
    assert "kload: error: no case ext4-none" in console
    assert set(sums_in(console)) == {"ext4-fsync"}
