"""Which versions of compilers have optimised a kernel, by which algorithms.

    bench/compilers.py [--again] [--store DIR] TOOLCHAIN ALGORITHM…

TOOLCHAIN is what programs set: an installed one (`clang-19`), or one in a directory
(`gcc:DIRECTORY`). A very small kernel is built plainly and with a profile of each algorithm, booted
and measured. What came out is written to docs/toolchains/tried.json and tried.md after each, by the
version that the compiler reports, and what is there is not run again without ``--again``.

The exit status is 1 if a kernel is not built, does not boot, or does not beat the plain one. It
takes about five minutes on two cores for an algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from measure import outcomes
from measure.outcomes import Outcome, failed, figures

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "toolchains" / "tried"
OUT = ROOT / "out" / "compilers"

PROGRAM = """\
set toolchain {toolchain}.
set config {config}.
set seed 1.
set actions 8.
opt debian:linux-source-6.12 {algorithm} rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
"""


def main() -> None:
    title = __doc__.partition("\n")[0]
    outcomes.of_toolchain(title, "ALGORITHM", RESULT, tried, page, failed)


def tried(toolchain: str, algorithm: str, where: Sequence[str]) -> Outcome:
    """Build, boot and measure a kernel."""
    program = PROGRAM.format(toolchain=toolchain, config=outcomes.TINY_CONFIG, algorithm=algorithm)
    return outcomes.tried(program, OUT / f"{toolchain.replace('/', '-')}-{algorithm}", where)


def page(results: Mapping[str, Outcome]) -> str:
    """Markdown of the results, the newest version of each family first."""
    names = sorted(results, key=_age)
    return _PAGE.format(rows="\n".join(_row(name, results[name]) for name in names))


def _age(name: str) -> tuple[str, int, str]:
    compiler, _, algorithm = name.partition("/")
    family, _, version = compiler.rpartition("-")
    return family, -int(version), algorithm


def _row(name: str, outcome: Outcome) -> str:
    compiler, _, algorithm = name.partition("/")
    words = [f"`{compiler}`", f"`{algorithm}`"]
    if outcome["outcome"] == "measured":
        words += figures(outcome)
    else:
        words += ["", f"failed: {outcome['reason']}", "", "", ""]
    return f"| {' | '.join(words)} |"


_PAGE = """# Compilers that were tried

`bench/compilers.py TOOLCHAIN ALGORITHM…` writes this page. It runs a program for each line, as a
user would: a kernel in a very small configuration (`bench/compilers/tiny.config`, x86-64), trained
by 8 actions of `rand kbench` and measured by the suite `mepof`. *Booted* says that the plain and
the optimised kernel booted and passed their self-check. The figures are percent fewer than in the
plain kernel of the same compiler, *counted* in the emulator, geometric means over eight cases; that
of the text is its growth. They say that a compiler works, not what a kernel of yours gains: see
[the matrix](../benchmarks/matrix.md).

| compiler | algorithm | kernel | outcome | kernel instructions | taken branches | text |
|---|---|---|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
