"""Kernels that count in two rounds, and GCC's, as small as they can be: with an empty store, they
add five minutes of two cores to `make test`. The first have the plain kernel of the quickstart, and
few files of either count. What such kernels are worth is measured elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import Safety

from .counts import check_second_round, check_selected_counts

pytestmark = pytest.mark.boot

TWO_ROUNDS = """\
set seed 1.
set instrument sched.
opt debian:linux-source-6.12 cspgo trav kbench O2.
"""
GCC = f"""\
set arch um.
set device uml.
set toolchain gcc.
set config {Path(__file__).with_name("tiny.um.config")}.
set seed 1.
set instrument fs/pipe.c,fs/read_write.c,lib/string.c,kernel/signal.c.
set without mix-ipc,mix-all.
opt debian:linux-source-6.12 gcc-pgo trav kbench O2.
"""


def made(executor: LocalExecutor, program: str, out: Path) -> Mapping[str, Path]:
    """What the steps of a program made whose optimised kernel boots and passes its check."""
    plan = plan_of(Source("counts.g4", program))
    steps = executor.run(plan, out, lambda event: None).run.steps
    paths = {name: step.path for name, step in steps.items()}
    safety = Safety.read(paths["opt/build"])
    assert (safety.booted, safety.self_check, safety.failure) == (True, "passed", None)
    return paths


def test_the_second_round_counts_in_a_kernel_that_the_first_optimised(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    assert check_second_round(made(executor, TWO_ROUNDS, tmp_path / "out")) > 500


def test_gcc_counts_arcs_and_values_in_the_files_that_are_instrumented(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    assert check_selected_counts(made(executor, GCC, tmp_path / "out")) > 100
