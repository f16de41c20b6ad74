"""What a worker makes of a request, without a cluster."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mepof.device.flashing import is_permitted
from mepof.errors import MepofError, WorkError
from mepof.executor import carried
from mepof.executor.carried import Request, Unfit, Where, _job, perform
from mepof.plan.body import StepContext
from mepof.plan.digest import HostDigests
from mepof.plan.fingerprint import Ingredients
from mepof.plan.model import HostInput, Step
from mepof.plan.remote import Remote
from mepof.plan.shared import SharedStore
from mepof.plan.store import Store
from mepof.process import look_again
from mepof.toolchain.programs import banner_of

from .fake_steps import Fake


class Compiling(Fake):
    """Its result depends on the compiler, and on what its input says of itself."""

    def identity(self, step: Step) -> Mapping[str, str]:
        given = step.inputs["config"]
        assert isinstance(given, HostInput)
        return {"tool": banner_of("mcc", None), "config": Path(given.path).read_text()}


class Flashing(Compiling):
    """Fails with what its user allows."""

    def run(self, context: StepContext) -> None:
        raise WorkError(f"permitted: {is_permitted()}")


@dataclass
class Machine:
    """A worker with a compiler and a file."""

    root: Path
    step: Step = field(
        default_factory=lambda: Step("x/build", "fake", {}, {"config": HostInput("my.config")})
    )

    def install(self, version: str) -> None:
        (self.root / "mcc").write_text(f"#!/bin/sh\necho mcc {version}\n")
        (self.root / "mcc").chmod(0o755)

    def asked(self, version: str) -> Request:
        """The request of who has a version of the compiler."""
        path = self.root / "my.config"
        body, store = Compiling(), Store(self.root / "store")
        store.open()
        inputs = {"config": HostDigests(store.host_memory).digest(path)}
        tools = {"tool": f"mcc {version}", "config": path.read_text()}
        return Request(
            run="run",
            bodies=lambda: {"fake": body},
            step=self.step,
            ingredients=Ingredients.of(self.step, body, inputs, tools),
            artifacts={},
            host={"config": str(path)},
            cores=1,
            again=False,
            client=Where.of(store),
            log="/home/me/logs/x.log",
            flash=False,
            asker="Client-1",
        )

    def taken(self, request: Request) -> Step:
        """The step as the worker performs it."""
        store = Store(self.root / "store")
        store.open()
        return _job(request, store, Where.of(store), threading.Event()).step


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "my.config").write_text("CONFIG_NET=y\n")
    made = Machine(tmp_path)
    made.install("1.0")
    yield made
    look_again()


def test_a_relative_path_means_the_file_of_who_asks(machine: Machine) -> None:
    step = machine.taken(machine.asked("1.0"))
    assert step.inputs == {"config": HostInput(str(machine.root / "my.config"))}


def test_a_worker_states_the_tools_that_it_has_now(machine: Machine) -> None:
    machine.taken(machine.asked("1.0"))
    machine.install("1.1")
    with pytest.raises(Unfit, match=r"other tools: tool \(mcc 1.1, not mcc 1.0\)"):
        machine.taken(machine.asked("1.0"))
    machine.taken(machine.asked("1.1"))


def test_a_worker_whose_shared_store_is_another_names_it(machine: Machine) -> None:
    store = SharedStore(machine.root / "s", Remote(str(machine.root / "shared")), lambda text: None)
    store.open()
    with closing(store), pytest.raises(Unfit, match=f"read them: {store.remote.url}") as caught:
        _job(machine.asked("1.0"), store, Where.of(store), threading.Event())
    assert "mount it on both" in (caught.value.remedy or "")


@pytest.fixture
def working(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose process is a worker, with a store that whoever asks cannot see."""
    distributed = pytest.importorskip("distributed")
    store = Store(machine.root / "store")
    store.open()
    shared = replace(Where.of(store), shared="farm")
    scheduler = SimpleNamespace(log_event=None)
    worker = SimpleNamespace(
        address="tcp://rack7:1", loop=None, scheduler=scheduler, log_event=lambda *event: None
    )
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(distributed.utils, "sync", lambda *call, **named: None)
    monkeypatch.setattr(carried, "watch", lambda worker, asker, run: None)
    monkeypatch.setattr(carried, "worker_store", lambda: store)
    monkeypatch.setattr(Where, "of", lambda store: shared)
    return machine


def failure(machine: Machine, *, flash: bool) -> MepofError:
    asked = machine.asked("1.0")
    client = replace(asked.client, store="that of another machine")
    asked = replace(asked, bodies=lambda: {"fake": Flashing()}, client=client, flash=flash)
    failed = perform(asked).failure()
    assert isinstance(failed, MepofError)
    return failed


def test_a_remedy_names_the_log_where_the_user_has_it(working: Machine) -> None:
    remedy = failure(working, flash=False).remedy or ""
    log, alone = remedy.split("; ")
    assert log == "see /home/me/logs/x.log"
    assert alone.startswith(f"run it alone with {working.root}/store/logs/x-build-")
    assert alone.endswith(f".sh on {socket.gethostname()}")


def test_a_worker_may_flash_for_whoever_permits_it_and_for_nobody_else(working: Machine) -> None:
    assert [failure(working, flash=each).message for each in (True, False)] == [
        "x/build: permitted: True",
        "x/build: permitted: False",
    ]
    assert not is_permitted()
