"""Phones of workers: a run that has one keeps it until the run ends, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mepof.errors import Interrupted, WorkError
from mepof.events import Event, StepNote
from mepof.executor import on_cluster
from mepof.executor.carried import Where
from mepof.executor.cluster import OURS
from mepof.executor.on_cluster import OnCluster
from mepof.plan.engine import Engine
from mepof.plan.model import Json, Plan, Step
from mepof.plan.store import Store

from .fake_steps import bodies, fake, plan_of

distributed = pytest.importorskip("distributed")

#: Seconds until a test is considered to hang.
LIMIT = 60.0


@dataclass
class Lab:
    """Two workers of one machine that offer a phone, of which the list has one."""

    address: str
    root: Path
    client: Any
    events: list[Event] = field(default_factory=list)

    def run(self, plan: Plan, cancel: threading.Event | None = None) -> None:
        run(self.client, self.root, plan, self.events, cancel)

    def users(self) -> set[str]:
        """The processes that have used a phone."""
        texts = [event.text for event in self.events if isinstance(event, StepNote)]
        return {text.rpartition(" ")[2] for text in texts if text.startswith("uses a in")}


def run(
    client: Any, root: Path, plan: Plan, events: list[Event], cancel: threading.Event | None
) -> None:
    store = Store(root / "store")
    store.open()
    on = OnCluster(client, bodies, Where.of(store))
    with on.heard(events.append):
        Engine(store, bodies(), 2, events.append, on, placed=True).run(
            plan, root / f"out-{time.monotonic_ns()}", cancel=cancel
        )


def ask(address: str, root: Path, plan: Plan) -> None:
    """A run in a process of its own."""
    with distributed.Client(address, set_as_default=False) as client:
        run(client, root, plan, [], None)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    root = tmp_path_factory.mktemp("lab")
    (root / "phones.toml").write_text(
        '[[phone]]\nname = "a"\nfastboot = "a-1"\nmodel = "model.toml"\n'
    )
    (root / "model.toml").write_text('title = "a phone"\nsource = "nowhere"\n')
    environment = {
        "MEPOF_STORE": str(root / "store"),
        "MEPOF_SHARED_STORE": "",
        "MEPOF_PHONES": str(root / "phones.toml"),
        "XDG_STATE_HOME": str(root / "state"),
        "ANDROID_SERIAL": "",
    }
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=2,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        resources={OURS: 1, "cores": 2, "phone": 1},
        env=environment,
        local_directory=str(root / "dask"),
        memory_limit=0,
    ) as made:
        yield made, root


@pytest.fixture
def lab(cluster: tuple[Any, Path]) -> Iterator[Lab]:
    made, root = cluster
    with distributed.Client(made, set_as_default=False) as client:
        yield Lab(made.scheduler_address, root, client)


def on_phone(identifier: str, *after: str, **params: Json) -> Step:
    return fake(identifier, *after, kind="on-phone", **params)


def test_all_steps_of_a_run_use_the_phone_of_one_worker(lab: Lab) -> None:
    lab.run(plan_of(*(on_phone(f"s{number}", n=number, test="one") for number in range(6))))
    assert len(lab.users()) == 1


@pytest.mark.parametrize("ending", ["well", "failed", "interrupted"])
def test_a_phone_is_free_as_soon_as_a_run_has_ended(lab: Lab, tmp_path: Path, ending: str) -> None:
    cancel = threading.Event()
    mark = tmp_path / "mark"
    match ending:
        case "well":
            lab.run(plan_of(on_phone("one", ending=ending)))
        case "failed":
            with pytest.raises(WorkError, match="the link failed"):
                lab.run(plan_of(on_phone("one", once=f"fails:{mark}")))
        case "interrupted":
            threading.Thread(target=set_when, args=(mark, cancel)).start()
            with pytest.raises(Interrupted):
                lab.run(plan_of(on_phone("one", once=f"waits:{mark}")), cancel)
    assert free(lab)


def set_when(path: Path, event: threading.Event) -> None:
    while not path.exists():
        time.sleep(0.01)
    event.set()


def free(lab: Lab) -> bool:
    """Whether no process uses the phone."""
    import fcntl

    with next((lab.root / "state").rglob("*.lock")).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_phone_is_free_after_its_run_was_killed(lab: Lab, tmp_path: Path) -> None:
    first = plan_of(on_phone("one", once=f"waits:{tmp_path}/mark"))
    killed = multiprocessing.get_context("spawn").Process(
        target=ask, args=(lab.address, lab.root, first)
    )
    killed.start()
    until = time.monotonic() + LIMIT
    while not (tmp_path / "mark").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    killed.kill()
    killed.join()
    assert not free(lab)
    lab.run(plan_of(on_phone("two", killed=os.getpid())))
    assert len(lab.users()) == 1
    assert time.monotonic() < until, "its step was interrupted"
    assert free(lab)


def test_a_run_waits_until_the_other_one_has_ended(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "_BUSY_SECONDS", 0.1)
    go_on = tmp_path / "go on"
    first = plan_of(
        on_phone("one", n=1, until=str(go_on)), on_phone("two", "one", n=2), fake("end", "two")
    )
    other = Lab(lab.address, lab.root, lab.client)
    one = threading.Thread(target=other.run, args=(first,))
    one.start()
    until = time.monotonic() + LIMIT
    while not other.users():
        assert time.monotonic() < until
        time.sleep(0.01)

    def hear(event: Event) -> None:
        events.append(event)
        if isinstance(event, StepNote) and event.text.startswith("waiting:"):
            go_on.touch()

    events: list[Event] = []
    store = Store(lab.root / "store")
    on = OnCluster(lab.client, bodies, Where.of(store))
    with on.heard(hear):
        Engine(store, bodies(), 2, hear, on, placed=True).run(
            plan_of(on_phone("three", n=3)), lab.root / "out-three"
        )
    one.join()
    order = [event.text for event in events if isinstance(event, StepNote)]
    assert order[0].startswith("waiting: ")
    assert len(other.users()) == 1
    assert free(lab)
