"""The kernel with full debug information that profiles are made for."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from mepof.events import Event, StepStarted
from mepof.executor.local import LocalExecutor
from mepof.plan.model import HostInput, Input, Plan, Result, StepInput
from mepof.plan.store import default_store
from mepof.spec.kernel_build import KernelBuild
from mepof.spec.kernel_source import KernelSource

_SOURCE = "debian:linux-source-6.12"
_FRAGMENT = Path(__file__).with_name("debug.config")


def build() -> Path:
    """``vmlinux`` of Debian's kernel in the configuration ``slim`` with DWARF 5, from the
    store; the first call builds it."""
    source = KernelSource[Input](address=_SOURCE).step("source")
    kernel = KernelBuild[Input](
        arch="x86-64",
        toolchain="clang",
        config=("slim", HostInput(os.fspath(_FRAGMENT))),
        options=(),
        source=StepInput("source"),
    ).step("kernel")
    plan = Plan("", 0, (source, kernel), (Result("kernel", "image", "kernel"),))
    executor = LocalExecutor(default_store(), os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as scratch:
        finished = executor.run(plan, Path(scratch) / "run", _say)
    return finished.run.steps["kernel"].path / "vmlinux"


def _say(event: Event) -> None:
    if isinstance(event, StepStarted):
        print(f"{event.step}: {event.reason}", file=sys.stderr)


if __name__ == "__main__":
    print(build())
