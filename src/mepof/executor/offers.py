"""What a machine offers to steps, as ``mepof doctor`` finds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mepof import arch
from mepof.executor.cluster import installed
from mepof.toolchain.probe import KERNELS, Finding, kernels_of
from mepof.toolchain.requirements import findings


def offers_of_machine(store: Path) -> dict[str, float]:
    """What this machine offers beside cores: see :func:`offers_of`, and ``memory`` in MiB."""
    return {**offers_of(findings(store)), "memory": memory_of_machine()}


def memory_of_machine() -> float:
    """MiB of memory that this machine, or the container, may use.

    Raises:
        EnvironmentLack: Dask, which knows the limits of containers, is not installed.
    """
    installed()
    from distributed.system import MEMORY_LIMIT

    return float(MEMORY_LIMIT >> 20)


def offers_of(found: Sequence[Finding]) -> dict[str, float]:
    """The architectures whose kernels can be built and booted, and ``kvm``; any number of steps
    share each."""
    lacking = {each.goal for each in found if each.state != "ok"}
    offered = [
        each.name
        for each in arch.records()
        if KERNELS not in lacking and kernels_of(each.name) not in lacking
    ]
    if any(each.name == "/dev/kvm" and each.state == "ok" for each in found):
        offered.append("kvm")
    return dict.fromkeys(offered, 1.0)
