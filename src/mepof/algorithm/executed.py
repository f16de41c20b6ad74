"""How much of each function a branch trace executed, in the kernel and in its modules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof import _engine
from mepof.algorithm.branches import recorded_modules

# The engine's name for a table of functions.
_FORMAT = "functions"


@dataclass(frozen=True)
class ExecutedFunction:
    """What ran of a function.

    Attributes:
        name: of its symbol.
        size: bytes of its code.
        executed: bytes that ran, each as often as it did.
        branches: taken branches that begin or end in it.
    """

    name: str
    size: int
    executed: int
    branches: int

    @property
    def ran(self) -> bool:
        """Whether anything of it did."""
        return bool(self.executed or self.branches)


def executed_code(build: Path, traces: Sequence[Path], listing: Path) -> Iterator[ExecutedFunction]:
    """Every function of a kernel, in the order of addresses, then those of each recorded module.

    Args:
        traces: branch traces of the build.
        listing: the file that the engine writes it to; those of modules lie beside it.

    Raises:
        InputError: the traces are not of this kernel.
    """
    modules = recorded_modules(build, traces)
    recording = _engine.Recording(build / "vmlinux", traces, modules=modules)
    done = json.loads(_engine.convert(recording, _FORMAT, listing, allow_poor=True))
    for output in done["outputs"]:
        with Path(output).open(encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                _, size, executed, branches, name = line.rstrip("\n").split("\t")
                yield ExecutedFunction(name, int(size), int(executed), int(branches))
