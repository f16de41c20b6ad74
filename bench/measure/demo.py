"""The kernel and the guest that benchmarks of the emulator boot, and the machine they run on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mepof.device.protocol import INITRAMFS, Session
from mepof.errors import InputError
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.plan.store import default_store
from mepof.pmu.settings import modelling
from mepof.process import run

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "examples" / "quickstart.g4"


def images(kernel: Path | None, guest: Path | None, scratch: Path) -> tuple[Path, Path]:
    """A kernel and the artifact of a ``guest`` step: those that are given, or the demo's.

    Raises:
        InputError: only one of them is given, or the demo's are not in the store.
    """
    if (kernel is None) != (guest is None):
        raise InputError("a kernel goes with a guest", "give both --kernel and --guest, or neither")
    if kernel is not None and guest is not None:
        return kernel, guest
    build, programs = artifacts(("opt/build", "guest"), scratch)
    return build / "kernel", programs


def artifacts(wanted: Sequence[str], scratch: Path) -> list[Path]:
    """The artifacts of these steps of the demo.

    Raises:
        InputError: they are not in the store.
    """
    executor = LocalExecutor(default_store(), os.cpu_count() or 1)
    plan = plan_of(Source.read(_PROGRAM))
    if any(e.state != "cached" for e in executor.explain(plan) if e.step in wanted):
        raise InputError("the images of the demo are not in the store", "run `make demo` first")
    steps = executor.run(plan, scratch / "run", lambda event: None).run.steps
    return [steps[name].path for name in wanted]


def idle(kernel: Path | None, guest: Path | None, scratch: Path) -> Session:
    """A boot of these ``images`` without work."""
    image, programs = images(kernel, guest, scratch)
    return Session(arch="x86-64", kernel=image, initramfs=programs / INITRAMFS, requests=(), seed=1)


def modelled(session: Session, core: str, directory: Path) -> Session:
    """The session with the emulated PMU of a core, from these sources; its plugin is made in the
    directory."""
    run(["make", "-s", "-C", _ROOT / "native" / "pmu", f"OUT={directory}"])
    return replace(session, measure=modelling(core), artifacts={"pmu": directory})


def processor() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
