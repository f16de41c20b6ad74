"""GCC's kernels with its own profile: built, booted and counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.toolchain import gcda
from mepof.toolchain.protocol import select

pytestmark = [pytest.mark.boot, pytest.mark.gcc]

PROGRAM = Path(__file__).parents[2] / "examples" / "gcc-pgo.g4"
PROMISED_IMPROVEMENT_PERCENT = 10.0
# Kinds of counters: gcc/gcov-counter.def.
SIZES, TARGETS, FIRST_RUN = 3, 4, 7


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gcc")


@pytest.fixture(scope="module")
def made(executor: LocalExecutor, out: Path) -> Finished:
    return executor.run(plan_of(Source.read(PROGRAM)), out, lambda event: None)


@pytest.fixture(scope="module")
def counts(made: Finished) -> Mapping[str, gcda.Counts]:
    return gcda.read_archive(made.run.steps["opt/profile"].path / "kernel.gcda.tar")


def test_the_image_executes_fewer_kernel_instructions_and_passes_its_check(
    made: Finished, out: Path
) -> None:
    report = json.loads((out / "report.json").read_text())
    (gain,) = (
        row["geomean_improvement_percent"]
        for row in report["summary"]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    )
    assert gain >= PROMISED_IMPROVEMENT_PERCENT
    safety = Safety.read(made.run.steps["opt/build"].path)
    assert (safety.self_check, safety.failure) == ("passed", None)


def test_both_kernels_are_gccs(made: Finished) -> None:
    for name in ("plain/build", "opt/build"):
        compiler = BuildDescription.read(made.run.steps[name].path).origin.compiler
        assert compiler == select("gcc").version


def test_arcs_and_values_are_counted(counts: Mapping[str, gcda.Counts]) -> None:
    functions = [function for file in counts.values() for function in file.functions]
    assert sum(function.executed for function in functions) > 1000
    for kind in (SIZES, TARGETS, FIRST_RUN):
        assert any(any(function.counters.get(kind, ())) for function in functions), kind
