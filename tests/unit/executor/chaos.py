"""A run on a cluster during which faults of many kinds strike."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mepof.events import Event, StepFinished, StepNote
from mepof.executor.carried import Where
from mepof.executor.cluster import started
from mepof.executor.on_cluster import OnCluster
from mepof.plan.engine import Engine
from mepof.plan.model import Plan
from mepof.plan.store import Store, remove_tree

from .fake_steps import bodies, fake, plan_of, replace_worker

#: What happens to a worker while it has a step; the last kind happens to an artifact.
FAULTS = {
    "dies": "a worker dies (`SIGKILL`)",
    "hangs": "a worker hangs (`SIGSTOP`)",
    "is_cut": "a worker is partitioned: nothing comes or goes, and its step runs on",
    "fills": "a worker's disk is full (`ENOSPC`)",
    "damages": "a worker returns wrong bytes",
    "lost": "an artifact vanishes after its step",
}
_CHAIN = 16


@dataclass(frozen=True)
class Endured:
    """A run that went through faults.

    Attributes:
        steps: how many it had.
        seconds: how long it took.
        struck: how many faults of each kind have struck.
        noted: how often the executor said that a worker made a wrong artifact, has a full disk.
        same: whether the digests of all steps are those of a run without a cluster.
    """

    steps: int
    seconds: float
    struck: Mapping[str, int]
    noted: Mapping[str, int]
    same: bool


def endured(root: Path, counts: Mapping[str, int], workers: int, silence: float) -> Endured:
    """Run chains of steps, of which two in three meet a fault, on a cluster and alone.

    Args:
        counts: how many faults of each kind strike.
        silence: seconds after which a worker that says nothing is given up.
    """
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    chains = -(-len(kinds) * 3 // (2 * _CHAIN))
    names = [f"c{chain}-{at}" for chain in range(chains) for at in range(_CHAIN)]
    chance = random.Random(7)
    chance.shuffle(kinds)
    faults = dict(zip(chance.sample(names, len(kinds)), kinds, strict=True))
    plan = _plan(names, chains, faults, root)
    store = Store(root / "store")
    store.open()
    lost: set[str] = set()
    noted: Counter[str] = Counter()
    environment = {"MEPOF_STORE": str(store.root), "MEPOF_SHARED_STORE": ""}
    with started(workers, workers, {}, environment, root / "dask", silence) as client:

        def hear(event: Event) -> None:
            match event:
                case StepFinished() if faults.get(event.step) == "lost" and event.step not in lost:
                    lost.add(event.step)
                    remove_tree(store.object(event.digest))
                case StepNote() if event.text.endswith(": run elsewhere"):
                    address, _, what = event.text.removesuffix(": run elsewhere").partition(" ")
                    noted[what] += 1
                    if what == "made a wrong artifact":
                        # It gets no more steps; somebody replaces the machine.
                        client.run(replace_worker, workers=[address], on_error="ignore")

        on = OnCluster(client, bodies, Where.of(store))
        began = time.monotonic()
        made = Engine(store, bodies(), workers, hear, on, placed=True).run(plan, root / "out")
        seconds = time.monotonic() - began
    alone = Engine(Store(root / "alone"), bodies(), 1, lambda event: None)
    wanted = alone.run(plan, root / "alone-out")
    same = {n: s.digest for n, s in made.steps.items()} == {
        n: s.digest for n, s in wanted.steps.items()
    }
    struck = Counter(faults[name] for name in faults if (root / name).exists() or name in lost)
    return Endured(len(plan.steps), seconds, struck, noted, same)


def _plan(names: list[str], chains: int, faults: Mapping[str, str], root: Path) -> Plan:
    steps = []
    for name in names:
        chain, at = name.split("-")
        before = [f"{chain}-{int(at) - 1}"] if int(at) else []
        fault = faults.get(name, "lost")
        once = {} if fault == "lost" else {"once": f"{fault}:{root}/{name}"}
        steps.append(fake(name, *before, n=name, **once))
    steps.append(fake("end", *(f"c{chain}-{_CHAIN - 1}" for chain in range(chains))))
    return plan_of(*steps)
