"""What ``bench/transfer.py`` measures: kernels that profiles are from, and those that use them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: The images of a cell: with a profile of its own kernel, and with that of another.
OWN, FOREIGN = "own", "foreign"


@dataclass(frozen=True)
class Kernel:
    """A kernel, and the core that it runs on, if that matters."""

    source: str
    arch: str
    toolchain: str
    config: str
    cpu: str | None = None

    def settings(self) -> str:
        """What a program says of it before its statements."""
        return (
            f"set arch {self.arch}.\nset toolchain {self.toolchain}.\nset config {self.config}.\n"
        )


@dataclass(frozen=True)
class Cell:
    """A row, and the algorithm of its profiles."""

    row: str
    title: str
    algorithm: str
    origin: Kernel
    target: Kernel

    @property
    def name(self) -> str:
        """Its key in the results."""
        return f"{self.row}/{self.algorithm}"

    def is_chosen_by(self, words: Sequence[str]) -> bool:
        """Whether it has all of these words."""
        return set(words) <= {self.name, self.row, self.algorithm}

    def program(self) -> str:
        """Both profiles, and the images with them."""
        opt = f"{self.algorithm} rand kbench O2."
        core = "" if self.target.cpu is None else f"set core {self.target.cpu}.\n"
        # Steps that are alike are one step. A depth means nothing without a period.
        apart = "" if self.origin.cpu is None else "set depth 31.\n"
        return f"""\
set seed 1.
set repetitions 1.

{self.origin.settings()}{apart}
set name origin.
opt {self.origin.source} {opt}

{self.target.settings()}{apart and "set depth 32."}
set name {OWN}.
opt {self.target.source} {opt}
set name {FOREIGN}.
recomp {self.target.source} origin O2.

{core}eval plain;{OWN};{FOREIGN} syscall;overhead;proc;pipe;file.
"""


def cells(path: Path) -> list[Cell]:
    """Those of a data file, in its order."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Cell(
            name,
            row["title"],
            algorithm,
            Kernel(**data["usual"] | row.get("from", {})),
            Kernel(**data["usual"] | row.get("to", {})),
        )
        for name, row in data["rows"].items()
        for algorithm in row["algorithms"]
    ]
