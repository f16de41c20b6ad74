"""GCC's kernels with its own profile: built, booted and counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.toolchain.named import select

from .counts import check_gcc_counts

pytestmark = [pytest.mark.boot, pytest.mark.gcc]

EXAMPLES = Path(__file__).parents[2] / "examples"
#: By example; `arm` is gcc-pgo for 32-bit Arm.
PROMISED_PERCENT_FEWER = {"gcc-pgo": 10.0, "gcc-autofdo": 10.0, "arm": 8.5}


@dataclass(frozen=True)
class Made:
    """One of GCC's examples, run to its end.

    Attributes:
        directory: of its report.
    """

    example: str
    directory: Path
    finished: Finished


@pytest.fixture(scope="module", params=PROMISED_PERCENT_FEWER)
def made(
    executor: LocalExecutor,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Made:
    directory = tmp_path_factory.mktemp(request.param)
    plan = plan_of(Source.read(EXAMPLES / f"{request.param}.g4"))
    return Made(request.param, directory, executor.run(plan, directory, lambda event: None))


def test_the_image_executes_fewer_kernel_instructions_and_passes_its_check(made: Made) -> None:
    report = json.loads((made.directory / "report.json").read_text())
    (gain,) = (
        row["geomean_reduction_percent"]
        for row in report["summary"]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    )
    assert gain >= PROMISED_PERCENT_FEWER[made.example]
    safety = Safety.read(made.finished.run.steps["opt/build"].path)
    assert (safety.self_check, safety.failure) == ("passed", None)


def test_both_kernels_are_gccs(made: Made) -> None:
    for name in ("plain/build", "opt/build"):
        compiler = BuildDescription.read(made.finished.run.steps[name].path).origin.compiler
        assert compiler == select("gcc").version


@pytest.mark.parametrize("made", ["gcc-pgo", "arm"], indirect=True)
def test_arcs_and_values_are_counted(made: Made) -> None:
    steps = {name: step.path for name, step in made.finished.run.steps.items()}
    assert check_gcc_counts(steps) > 1000
