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


@pytest.mark.parametrize(("name", "passing"), [("kselftest", 500), ("kunit", 300)])
def test_the_optimised_kernel_passes_what_the_plain_one_passes(
    executor: LocalExecutor, tmp_path: Path, name: str, passing: int
) -> None:
    text = Source.read(EXAMPLE).text
    asked = " kselftest."
    assert text.count(asked) == 1
    plan = plan_of(Source(EXAMPLE.name, text.replace(asked, f" {name}.")))
    steps = executor.run(plan, tmp_path / "out", lambda event: None).run.steps
    check = CheckVerdict.read(steps["check"].path)
    (gate,) = check.gates
    assert gate.gate == name
    assert [image.regressions for image in gate.images] == [()]
    assert check.passed
    assert gate.passing > passing
