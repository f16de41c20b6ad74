"""Programs of examples/ that need nothing but an emulator, run as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import Safety

pytestmark = [pytest.mark.boot, pytest.mark.examples]

EXAMPLES = Path(__file__).parents[2] / "examples"
#: What each image promises at least: percent fewer kernel instructions than the first of its
#: program, the geometric mean of the cases.
PROMISED = {
    "autofdo": {"opt": 11.0},
    "autofdo-probe": {"lines": 11.0, "probes": 10.0},
    "autofdo-propeller": {"opt": 11.0, "opt2": 11.0},
    "autofdo-bolt": {"opt": 11.0, "opt2": 10.0},
    "cspgo": {"once": 11.0, "twice": 11.0},
    "options": {"o2-pgo": 11.0, "os-pgo": 8.0, "o3-pgo": 10.0},
    "propeller-paths": {"layout": 11.0, "paths": 11.0},
    "selective": {"parts": 7.0, "hottest": 12.0},
}


@pytest.mark.parametrize("example", PROMISED)
def test_an_example_makes_kernels_that_are_faster_and_pass_their_check(
    executor: LocalExecutor, tmp_path: Path, example: str
) -> None:
    plan = plan_of(Source.read(EXAMPLES / f"{example}.g4"))
    steps = executor.run(plan, tmp_path, lambda event: None).run.steps
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    gains = {
        row["image"]: row["geomean_reduction_percent"]
        for row in report["summary"]
        if row["metric"] == "kernel_instructions"
    }
    for image, promised in PROMISED[example].items():
        assert gains[image] >= promised
        assert Safety.read(steps[f"{image}/build"].path).self_check == "passed"
