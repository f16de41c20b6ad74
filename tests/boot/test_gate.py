"""The kernel's own tests on the quickstart's kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.gate.verdict import CheckVerdict

pytestmark = [pytest.mark.boot, pytest.mark.gate]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gate.g4"


def test_the_optimised_kernel_passes_what_the_plain_one_passes(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    plan = plan_of(Source.read(EXAMPLE))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    check = CheckVerdict.read(steps["check"].path)
    (gate,) = check.gates
    assert [image.regressions for image in gate.images] == [()]
    assert check.passed
    assert gate.passing > 500
