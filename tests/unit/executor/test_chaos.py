"""A run during which workers die and hang and artifacts vanish ends with the same digests."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mepof.events import Event, StepFinished
from mepof.executor.carried import Where
from mepof.executor.dask import OnCluster
from mepof.plan.engine import Engine
from mepof.plan.store import Store, remove_tree

from .fake_steps import bodies, fake, plan_of

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from mepof.executor.cluster import started

CHAINS, LENGTH = 8, 8
DEATHS, HANGS, DAMAGES, LOSSES = 28, 2, 1, 24


@pytest.mark.patient
def test_fifty_faults_change_no_digest(tmp_path: Path) -> None:
    chance = random.Random(7)
    names = [f"c{chain}-{at}" for chain in range(CHAINS) for at in range(LENGTH)]
    faults = ["dies"] * DEATHS + ["hangs"] * HANGS + ["damages"] * DAMAGES
    faulty = dict(zip(chance.sample(names, len(faults)), faults, strict=True))
    lost = set(chance.sample([name for name in names if name not in faulty], LOSSES))
    steps = []
    for name in names:
        chain, at = name.split("-")
        before = [f"{chain}-{int(at) - 1}"] if int(at) else []
        once = {"once": f"{faulty[name]}:{tmp_path}/{name}"} if name in faulty else {}
        steps.append(fake(name, *before, n=name, **once))
    steps.append(fake("end", *(f"c{chain}-{LENGTH - 1}" for chain in range(CHAINS))))
    plan = plan_of(*steps)
    store = Store(tmp_path / "store")
    store.open()
    gone: set[str] = set()

    def lose(event: Event) -> None:
        if isinstance(event, StepFinished) and event.step in lost - gone:
            gone.add(event.step)
            remove_tree(store.object(event.digest))

    environment = {"MEPOF_STORE": str(store.root), "MEPOF_SHARED_STORE": ""}
    with started(3, 3, {}, environment, tmp_path / "dask", silence=20) as client:
        on = OnCluster(client, bodies, Where.of(store))
        made = Engine(store, bodies(), 3, lose, on, placed=True).run(plan, tmp_path / "out")
    assert gone == lost
    assert {name for name in names if (tmp_path / name).exists()} == faulty.keys()
    alone = Engine(Store(tmp_path / "alone"), bodies(), 1, lambda event: None)
    wanted = alone.run(plan, tmp_path / "alone-out")
    assert {n: s.digest for n, s in made.steps.items()} == {
        n: s.digest for n, s in wanted.steps.items()
    }
