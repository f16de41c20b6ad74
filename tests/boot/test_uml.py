"""Kernels of User-Mode Linux, without a profile and with one, and the load that they time.

From a cold store, the plain kernels cost the most, 742 files each: 7 minutes by Clang and 5.5 by
GCC, on two busy cores. That is too long for `make test`. `cspgo` and `gcc-pgo` compile 60 files
again for each of their other kernels, and `pgo` all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.measure.native import cycles_in
from mepof.process import run
from mepof.profile.artifact import ProfileDescription
from mepof.suite.cases import load_suite

from .counts import check_second_round, check_selected_counts

pytestmark = pytest.mark.boot

HEAD = "set arch um.\nset device uml.\nset config kload.\nset seed 1.\n"
SOURCE = "debian:linux-source-6.12"
# Of the last two, what is not instrumented is compiled as in the plain kernel.
PROGRAMS = {
    "pgo": f"build {SOURCE} O2.\nopt {SOURCE} pgo trav kload O2.\n",
    "cspgo": f"set instrument vfs.\nopt {SOURCE} cspgo trav kload O2.\n",
    "gcc-pgo": f"set toolchain gcc.\nset instrument vfs.\nopt {SOURCE} gcc-pgo trav kload O2.\n",
}
CASES = {case.name for case in load_suite("kload").cases}


@dataclass(frozen=True)
class Made:
    """What the program of an algorithm made, by the names of its steps."""

    algorithm: str
    steps: Mapping[str, Path]

    @property
    def plain(self) -> Path:
        return self.steps.get("build/build") or self.steps["plain/build"]

    @property
    def optimised(self) -> Path:
        return self.steps["opt/build"]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("pgo", marks=pytest.mark.rounds),
        pytest.param("cspgo", marks=pytest.mark.rounds),
        pytest.param("gcc-pgo", marks=pytest.mark.gcc),
    ],
)
def made(
    executor: LocalExecutor,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Made:
    algorithm = request.param
    plan = plan_of(Source("uml.g4", HEAD + PROGRAMS[algorithm]))
    steps = executor.run(plan, tmp_path_factory.mktemp(algorithm), lambda event: None).run.steps
    return Made(algorithm, {name: step.path for name, step in steps.items()})


def load_of(build: Path, directory: Path, *words: str) -> str:
    """What a kernel prints that runs the load before its first process, and powers off."""
    parameters = ["mem=256M", "con=null", "con0=null,fd:1", "uml_dir=.", f"kload={','.join(words)}"]
    command = ["setarch", "--addr-no-randomize", str(build / "kernel"), *parameters]
    return run(command, cwd=directory, timeout=300, check=False).output


def sums_in(console: str) -> Mapping[str, str]:
    return dict(re.findall(r"kload: case=(\S+) .* sum=(\d+)", console))


def test_the_kernel_with_a_profile_boots_and_passes_its_check(made: Made) -> None:
    safety = Safety.read(made.optimised)
    assert (safety.booted, safety.self_check, safety.failure) == (True, "passed", None)
    plain, optimised = (BuildDescription.read(each) for each in (made.plain, made.optimised))
    assert plain.version == optimised.version
    assert plain.origin.compiler == optimised.origin.compiler
    assert (made.plain / "kernel").read_bytes() != (made.optimised / "kernel").read_bytes()
    last = "opt/profile2" if made.algorithm == "cspgo" else "opt/profile"
    assert ProfileDescription.read(made.steps[last]).algorithm == made.algorithm


def test_both_kernels_run_every_case_with_the_same_results(made: Made, tmp_path: Path) -> None:
    plain, optimised = (load_of(build, tmp_path, "3") for build in (made.plain, made.optimised))
    for console in (plain, optimised):
        assert set(cycles_in(console)) == CASES
        assert "left out" not in console
    sums = sums_in(plain)
    assert sums == sums_in(optimised)
    # Of the control, and of every case that leaves a file.
    assert {"checksum", "write-1k", "ext4-write-1k", "ext4-fsync"} <= set(sums)
    # What is written does not depend on the file system.
    assert sums["ext4-write-1k"] == sums["write-1k"] != sums["write-64"]


def test_a_case_that_the_kernel_does_not_have_is_an_error(made: Made, tmp_path: Path) -> None:
    console = load_of(made.plain, tmp_path, "1", "ext4-none", "ext4-fsync")
    assert "kload: error: no case ext4-none" in console
    assert set(sums_in(console)) == {"ext4-fsync"}


@pytest.mark.rounds
@pytest.mark.parametrize("made", ["cspgo"], indirect=True)
def test_the_second_round_counts_in_a_kernel_that_the_first_optimised(made: Made) -> None:
    assert check_second_round(made.steps) > 1000


@pytest.mark.gcc
@pytest.mark.parametrize("made", ["gcc-pgo"], indirect=True)
def test_gcc_counts_arcs_and_values_in_the_files_that_are_instrumented(made: Made) -> None:
    assert check_selected_counts(made.steps) > 100
