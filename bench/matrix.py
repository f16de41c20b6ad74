"""Which kernels can be optimised by which compilers and algorithms, for which architectures.

    bench/matrix.py [--again] [--list] [--store DIR] [WORD…]

Every cell is a kernel, a compiler, an algorithm and an architecture of bench/matrix.toml. WORDs
choose the cells that have all of them (`5.10 pgo`, or `5.10/clang-22/pgo/x86-64`); without any, all
are chosen. A cell is first asked for by `mepof adapt check`, and then run as a user would, by a
program of six lines. What came out is written to docs/benchmarks/matrix.json and .md after each
cell, and a cell that is there is not run again without ``--again``. A run that was interrupted goes
on from the store.

The exit status is 1 if a chosen cell fits and its kernel does not boot or does not beat its
baseline. It takes hours on two cores for each kernel and compiler.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measure import outcomes
from measure.left import COUNTED, geometric, saved
from measure.outcomes import INSTRUCTIONS, Outcome, ended, failed

ROOT = Path(__file__).parents[1]
CHOICES = ROOT / "bench" / "matrix.toml"
RESULT = ROOT / "docs" / "benchmarks" / "matrix"
OUT = ROOT / "out" / "matrix"

PROGRAM = """\
set arch {arch}.
set toolchain {toolchain}.
set config slim.
set seed 1.
opt {source} {algorithm} rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
"""


@dataclass(frozen=True)
class Cell:
    """What is optimised, by what and for what."""

    kernel: str
    toolchain: str
    algorithm: str
    arch: str

    @property
    def name(self) -> str:
        """Its key in the results."""
        return "/".join((self.kernel, self.toolchain, self.algorithm, self.arch))

    def is_chosen_by(self, words: Sequence[str]) -> bool:
        """Whether it has all of these words."""
        return set(words) <= {self.name, *self.name.split("/")}


@dataclass(frozen=True)
class Choices:
    """What is crossed: sources by kernel, and algorithms by toolchain."""

    architectures: tuple[str, ...]
    kernels: Mapping[str, str]
    toolchains: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: Path) -> Choices:
        """Those of a data file."""
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        tried = {name: tuple(algorithms) for name, algorithms in data["toolchains"].items()}
        return cls(tuple(data["architectures"]), data["kernels"], tried)

    def cells(self) -> Iterator[Cell]:
        """Every cell."""
        for arch in self.architectures:
            for kernel in self.kernels:
                for toolchain, algorithms in self.toolchains.items():
                    for algorithm in algorithms:
                        yield Cell(kernel, toolchain, algorithm, arch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="run cells that have a result too")
    parser.add_argument("--list", action="store_true", help="show the chosen cells only")
    parser.add_argument("--store", type=Path)
    parser.add_argument("word", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    choices = Choices.read(CHOICES)
    chosen = [cell for cell in choices.cells() if cell.is_chosen_by(arguments.word)]
    if not chosen:
        parser.error("no cell has all these words; `--list` shows every cell")
    if arguments.list:
        results = outcomes.known(RESULT)
        for cell in chosen:
            print(f"{cell.name}: {said(results.get(cell.name))}")
        return
    results = outcomes.kept(
        RESULT,
        {
            cell.name: partial(tried, cell, choices.kernels[cell.kernel], arguments.store)
            for cell in chosen
        },
        partial(page, choices),
        again=arguments.again,
    )
    if any(failed(results[cell.name]) for cell in chosen):
        sys.exit(1)


def tried(cell: Cell, source: str, store: Path | None) -> Outcome:
    """Ask whether a cell fits, and run it if it does."""
    where = ["--store", str(store)] if store is not None else []
    options = ["--arch", cell.arch, "--toolchain", cell.toolchain, "--algorithm", cell.algorithm]
    status, reason = ended(["adapt", "check", source, *options, *where])
    if status != 0:
        return {"outcome": "refused", "reason": reason}
    program = PROGRAM.format(
        arch=cell.arch, toolchain=cell.toolchain, source=source, algorithm=cell.algorithm
    )
    return outcomes.tried(program, OUT / cell.name.replace("/", "-"), where)


def said(outcome: Outcome | None) -> str:
    """An outcome in a few words."""
    if outcome is None:
        return "not run"
    if outcome["outcome"] != "measured":
        return str(outcome["outcome"])
    words = saved(geometric(outcome["left_percent"][INSTRUCTIONS])) + " %"
    return words if outcome["booted"] else "does not boot"


def page(choices: Choices, results: Mapping[str, Outcome]) -> str:
    """Markdown of the matrix."""
    cells = list(choices.cells())
    known = [cell for cell in cells if cell.name in results]
    return _PAGE.format(
        cells=len(cells),
        known=len(known),
        sections="\n".join(_section(arch, choices, results) for arch in choices.architectures),
        details="\n".join(_detail(cell, results[cell.name]) for cell in known),
        reasons="\n".join(_reasons(known, results)) or "None.",
    )


def _section(arch: str, choices: Choices, results: Mapping[str, Outcome]) -> str:
    columns = [(tool, one) for tool, several in choices.toolchains.items() for one in several]
    rows = [
        f"| {kernel} | "
        + " | ".join(said(results.get(Cell(kernel, *column, arch).name)) for column in columns)
        + " |"
        for kernel in choices.kernels
    ]
    titles = " | ".join(f"{toolchain} `{algorithm}`" for toolchain, algorithm in columns)
    head = f"## {arch}\n\n| kernel | {titles} |\n{'|---' * (len(columns) + 1)}|"
    return "\n".join([head, *rows, ""])


def _detail(cell: Cell, outcome: Outcome) -> str:
    words = [f"`{cell.name}`"]
    if outcome["outcome"] == "measured":
        words += [
            outcome["kernel"],
            outcome["tools"].get("clang") or outcome["tools"].get("gcc", ""),
            *(saved(geometric(outcome["left_percent"][metric])) for metric in COUNTED),
            f"{outcome['text_percent'] - 100:+.1f}",
        ]
    else:
        words += [outcome["outcome"], *[""] * (len(COUNTED) + 2)]
    return f"| {' | '.join(words)} |"


def _reasons(cells: Sequence[Cell], results: Mapping[str, Outcome]) -> Iterator[str]:
    for cell in cells:
        outcome = results[cell.name]
        if outcome["outcome"] != "measured":
            yield f"- `{cell.name}` {outcome['outcome']}: {outcome['reason']}"


_PAGE = """# Kernels, compilers, algorithms and architectures

`make test-matrix` writes this page: `bench/matrix.py` runs a program for each cell, as a user
would, with the configuration `slim`, trained by 24 actions of `rand kbench` and measured by the
suite `mepof`. The figures are percent fewer kernel instructions than in the plain kernel of the
same compiler, *counted* in the emulator; geometric means over eight cases. A cell that is *refused*
does not fit, as [`mepof adapt check`](../adapt.md) says in seconds; one that *failed* fits, and was
not built or did not boot. {known} of {cells} cells have been tried.

{sections}
## What was measured

| cell | kernel | compiler | kernel instructions | taken branches | text |
|---|---|---|---|---|---|
{details}

Percent fewer, and the growth of the text in percent.

## Reasons

{reasons}
"""


if __name__ == "__main__":
    main()
