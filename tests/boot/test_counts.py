"""Kernels that count in two rounds, and GCC's, as small as they can be: with an empty store, they
add five minutes of two cores to `make test`. The first have the plain kernel of the quickstart, and
few files of either count. What such kernels are worth is measured elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.kernel.selection import Selection
from mepof.process import run
from mepof.toolchain import gcda
from mepof.toolchain.protocol import select

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
# Kinds of counters: gcc/gcov-counter.def.
SIZES, TARGETS, FIRST_RUN = 3, 4, 7


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
    paths = made(executor, TWO_ROUNDS, tmp_path / "out")
    first, second = (
        BuildDescription.read(paths[name]).flags for name in ("opt/instrument", "opt/instrument2")
    )
    uses = "-fprofile-use=mepof-profiles/kernel.csprofdata"
    assert "-fprofile-instrument=llvm" in first and uses not in first
    assert "-fcs-profile-generate" in second and uses in second
    profile, both = (paths[name] / "kernel.csprofdata" for name in ("opt/profile", "opt/profile2"))
    assert functions_in_context(profile) == 0
    assert functions_in_context(both) > 100


def functions_in_context(profile: Path) -> int:
    """How many functions have counts that were made after inlining."""
    profdata = select("clang").tool("profile-merger")
    shown = run([profdata, "show", "--showcs", profile]).output
    (number,) = re.findall(r"^Total functions: (\d+)", shown, re.M)
    return int(number)


def test_gcc_counts_arcs_and_values_in_the_files_that_are_instrumented(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    paths = made(executor, GCC, tmp_path / "out")
    assert BuildDescription.read(paths["opt/build"]).origin.compiler == select("gcc").version
    counts = gcda.read_archive(paths["opt/profile"] / "kernel.gcda.tar")
    functions = [function for file in counts.values() for function in file.functions]
    assert sum(function.executed for function in functions) > 100
    for kind in (SIZES, TARGETS, FIRST_RUN):
        assert any(any(function.counters.get(kind, ())) for function in functions), kind
    counted = Selection.read(paths["opt/instrument"]).objects
    assert {Path(name).with_suffix(".o") for name in counts} == {Path(one.name) for one in counted}
