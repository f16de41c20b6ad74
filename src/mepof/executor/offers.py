"""What a machine offers to steps, as ``mepof doctor`` finds it, and what they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mepof import arch
from mepof.errors import listed
from mepof.executor.cluster import OURS, installed
from mepof.plan.body import Resources
from mepof.toolchain.probe import KERNELS, Finding, kernels_of
from mepof.toolchain.requirements import findings

#: How much of an offer that any number of steps share one of them takes.
SHARE = 1e-6
_MAX_NAMED = 3


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


def offered(info: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """What each worker offers, by its address, of those that can perform steps.

    Args:
        info: of a scheduler, as Dask gives it.
    """
    return {
        address: dict(each["resources"])
        for address, each in info["workers"].items()
        if OURS in each["resources"]
    }


def wanted_of(asked: Resources, workers: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """What a step asks of a worker, with no more cores and memory than the largest has.

    A step whose parts run elsewhere takes no core, for which a part may wait: Dask does not move
    parts to another worker.

    Args:
        workers: what each of them offers.
    """
    needs = dict.fromkeys(asked.needs, 0.0)
    if asked.device is not None:
        needs[asked.device.name] = 1.0
    able = [each for each in workers.values() if has(each, needs)] or list(workers.values())
    # A need is shared by any number of steps; Dask has no amount for that, so each takes little.
    wanted = {OURS: SHARE, **{name: amount or SHARE for name, amount in needs.items()}}
    if asked.part is not None:
        return wanted
    wanted["cores"] = max(1.0, min(float(asked.cores), _largest(able, "cores")))
    # What no worker speaks of, no step asks for.
    memory = min(float(asked.memory), _largest(able, "memory"))
    return {**wanted, "memory": memory} if memory else wanted


def _largest(workers: Sequence[Mapping[str, float]], name: str) -> float:
    return max((each.get(name, 0.0) for each in workers), default=0.0)


def has(worker: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    """Whether a worker offers what is wanted."""
    return all(name in worker and worker[name] >= amount for name, amount in wanted.items())


def room(worker: Mapping[str, float], wanted: Mapping[str, float]) -> int:
    """How many steps that want this a worker performs at a time."""
    if not has(worker, wanted):
        return 0
    return min(int(worker[name] / wanted[name]) for name in ("cores", "memory") if name in wanted)


def named(wanted: Mapping[str, float]) -> str:
    """What is wanted, in words."""
    cores = wanted.get("cores")
    amounts = [f"{cores:.0f} core{'s' * (cores != 1)}"] if cores else []
    amounts += [f"{wanted['memory']:.0f} MiB of memory"] if "memory" in wanted else []
    return ", ".join([*amounts, *sorted(wanted.keys() - {"cores", "memory", OURS})])


def lack(need: str, without: Sequence[str], of: int) -> str:
    """What is said of workers that cannot take a step.

    Args:
        without: their addresses.
        of: how many workers there are.
    """
    return (
        f"{len(without)} of {of} workers do not offer {need}: {listed(without, _MAX_NAMED)};"
        " `mepof doctor` there says what is missing"
    )


def waits(wanted: Mapping[str, float], others: Sequence[str]) -> str:
    """What is said of a step that no worker can take.

    Args:
        others: addresses of workers that are not mepof's.
    """
    text = f"waits for a worker with {named(wanted)}" if named(wanted) else "waits for a worker"
    if not others:
        return text
    which = ", ".join(others[:_MAX_NAMED]) + " …" * (len(others) > _MAX_NAMED)
    return (
        f"{text}; {which} cannot perform steps: start `mepof worker` there, or load"
        " mepof.executor.preload"
    )
