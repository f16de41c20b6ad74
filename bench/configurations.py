"""What hardened and real-time kernels gain, and those with larger pages or code in Rust.

    bench/configurations.py [--again] [--store DIR] [WORD…]

Every row is a kernel of bench/configurations.toml and an algorithm. WORDs choose the rows that have
all of them (`gki pgo`, `gki/arm64/pgo`); without any, all are chosen. A row is run as a user would,
by a program of a few lines. What came out is written to docs/benchmarks/configurations.json and .md
after each row, and a row that is there is not run again without ``--again``.

The exit status is 1 if a kernel is not built, does not boot, or does not beat the plain one. It
takes about an hour on two cores for each kernel; `rust-binder` needs rustc and bindgen
(docs/configs.md).
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from measure import outcomes
from measure.outcomes import Outcome, failed, figures

ROOT = Path(__file__).parents[1]
CHOICES = ROOT / "bench" / "configurations.toml"
RESULT = ROOT / "docs" / "benchmarks" / "configurations"
OUT = ROOT / "out" / "configurations"

PROGRAM = """\
set arch {arch}.
set toolchain clang-22.
set config {config}.
set seed 1.
opt {source} {algorithm} {training} O2.
eval plain.img;opt.img {metrics}.
"""


class Row(NamedTuple):
    """A kernel, and what optimises it."""

    config: str
    arch: str
    source: str
    training: str
    metrics: str
    algorithm: str

    @property
    def name(self) -> str:
        """Its key in the results."""
        return f"{self.config}/{self.arch}/{self.algorithm}"

    def is_chosen_by(self, words: Sequence[str]) -> bool:
        """Whether it has all of these words."""
        return set(words) <= {self.name, *self.name.split("/"), *self.config.split("+")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="run rows that have a result too")
    parser.add_argument("--store", type=Path)
    parser.add_argument("word", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    every = list(rows(CHOICES))
    chosen = [row for row in every if row.is_chosen_by(arguments.word)]
    if not chosen:
        parser.error(
            f"no row has all these words; there are {', '.join(row.name for row in every)}"
        )
    where = ["--store", str(arguments.store)] if arguments.store is not None else []
    results = outcomes.kept(
        RESULT,
        {row.name: partial(tried, row, where) for row in chosen},
        partial(page, every),
        again=arguments.again,
    )
    if any(failed(results[row.name]) for row in chosen):
        sys.exit(1)


def tried(row: Row, where: Sequence[str]) -> Outcome:
    """Run the program of a row."""
    program = PROGRAM.format(**row._asdict())
    return outcomes.tried(program, OUT / row.name.replace("/", "-"), where)


def rows(choices: Path) -> Iterator[Row]:
    """The rows of a data file."""
    for kernel in tomllib.loads(choices.read_text(encoding="utf-8"))["kernel"]:
        algorithms = kernel.pop("algorithms")
        yield from (Row(**kernel, algorithm=each) for each in algorithms)


def page(every: Sequence[Row], results: Mapping[str, Outcome]) -> str:
    """Markdown of the results."""
    return _PAGE.format(
        titles=" | ".join(_TITLES),
        rule="|---" * len(_TITLES) + "|",
        rows="\n".join(_line(row, results.get(row.name)) for row in every),
    )


def _line(row: Row, outcome: Outcome | None) -> str:
    words = [f"`{row.config}`", row.arch, f"`{row.algorithm}`", f"`{row.training}`"]
    if outcome is None:
        words += ["", "not run", "", "", ""]
    elif outcome["outcome"] != "measured":
        words += ["", f"failed: {outcome['reason']}", "", "", ""]
    else:
        words += figures(outcome)
    return f"| {' | '.join(words)} |"


_TITLES = (
    *("configuration", "architecture", "algorithm", "training", "kernel", "outcome"),
    *("kernel instructions", "taken branches", "text"),
)
_PAGE = """# Kernels of other configurations

`bench/configurations.py` writes this page. It runs a program for each line, as a user would, with
Clang 22: a kernel of one of the [configurations](../configs.md) that harden its code, are for real
time, have larger pages or code in Rust, trained by 24 actions and measured by the suite that it
names (for `kbench`, the five metrics of `mepof`). *Booted* says that the plain and the optimised
kernel booted and passed their self-check. The figures are percent fewer than in the plain kernel of
the same configuration, *counted* in the emulator, geometric means over the cases; that of the text
is its growth.

| {titles} |
{rule}
{rows}
"""


if __name__ == "__main__":
    main()
