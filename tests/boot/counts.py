"""What kernels have counted in two rounds, and GCC's, whatever they are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mepof.kernel.description import BuildDescription
from mepof.kernel.selection import Selection
from mepof.process import run
from mepof.toolchain import gcda
from mepof.toolchain.named import select

# Kinds of counters: gcc/gcov-counter.def.
SIZES, TARGETS, FIRST_RUN = 3, 4, 7


def check_second_round(steps: Mapping[str, Path]) -> int:
    """The second round of `cspgo` counted in a kernel that the first optimised.

    Returns:
        How many functions have counts that were made after inlining.
    """
    first, second = (
        BuildDescription.read(steps[name]).flags for name in ("opt/instrument", "opt/instrument2")
    )
    uses = "-fprofile-use=mepof-profiles/kernel.csprofdata"
    assert "-fprofile-instrument=llvm" in first and uses not in first
    assert "-fcs-profile-generate" in second and uses in second
    profile, both = (steps[name] / "kernel.csprofdata" for name in ("opt/profile", "opt/profile2"))
    assert functions_in_context(profile) == 0
    return functions_in_context(both)


def functions_in_context(profile: Path) -> int:
    """How many functions have counts that were made after inlining."""
    profdata = select("clang").tool("profile-merger")
    shown = run([profdata, "show", "--showcs", profile]).output
    (number,) = re.findall(r"^Total functions: (\d+)", shown, re.M)
    return int(number)


def check_gcc_counts(steps: Mapping[str, Path]) -> int:
    """GCC built the kernel, and counted arcs and values.

    Returns:
        How many functions ran.
    """
    assert BuildDescription.read(steps["opt/build"]).origin.compiler == select("gcc").version
    counts = gcda.read_archive(steps["opt/profile"] / "kernel.gcda.tar")
    functions = [function for file in counts.values() for function in file.functions]
    for kind in (SIZES, TARGETS, FIRST_RUN):
        assert any(any(function.counters.get(kind, ())) for function in functions), kind
    return sum(function.executed for function in functions)


def check_selected_counts(steps: Mapping[str, Path]) -> int:
    """GCC counted, in the files that are instrumented and no others.

    Returns:
        How many functions ran.
    """
    counts = gcda.read_archive(steps["opt/profile"] / "kernel.gcda.tar")
    counted = Selection.read(steps["opt/instrument"]).objects
    assert {Path(name).with_suffix(".o") for name in counts} == {Path(one.name) for one in counted}
    return check_gcc_counts(steps)
