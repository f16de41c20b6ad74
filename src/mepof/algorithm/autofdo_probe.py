"""``autofdo-probe``: sample profiles by pseudo probes instead of debug lines.

Probes mark the basic blocks of every function before anything moves them, and a hash of its
control flow tells a function that has changed. They cost a little code motion in the kernel that
is profiled, and a section of the file.
"""

from __future__ import annotations

from mepof.algorithm.autofdo import AutoFdo

ALGORITHM = AutoFdo(
    "kernel.probes",
    # Probes ask for unique names of static functions, with which kernels do not link: their
    # assembly and their linker script name some.
    ("-fpseudo-probe-for-profiling", "-fno-unique-internal-linkage-names"),
    # A probe is told by its distance from the one before, which may be in the other part of a split
    # function: the assembler of Clang 22 refuses that.
    ("-fno-split-machine-functions",),
    lines=False,
)
