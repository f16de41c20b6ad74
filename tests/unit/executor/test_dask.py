"""Steps on a Dask cluster: the same digests as here, whatever happens to workers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mepof.errors import EnvironmentLack, InputError, Interrupted, MepofError, StoreFull, WorkError
from mepof.events import Event, StepFailed, StepNote
from mepof.executor import carried, dask, on_cluster
from mepof.executor.carried import Where, packed, unpacked
from mepof.executor.offers import SHARE, memory_of_machine, waits, wanted_of
from mepof.executor.on_cluster import OnCluster
from mepof.plan.body import Claim, Resources
from mepof.plan.engine import Engine, RunResult
from mepof.plan.model import HostInput, Json, Plan, Step
from mepof.plan.store import Store

from .fake_steps import bodies, fake, plan_of

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from mepof.executor.cluster import OURS, started

DIAMOND = plan_of(
    fake("first"),
    fake("left", "first", n=1),
    fake("right", "first", n=2, cores=64),
    fake("last", "left", "right"),
)


@dataclass
class Farm:
    """A cluster of two processes that use one store."""

    client: Any
    root: Path
    events: list[Event] = field(default_factory=list)

    def run(self, plan: Plan, out: str = "out", cancel: threading.Event | None = None) -> RunResult:
        store = Store(self.root / "store")
        store.open()
        on = OnCluster(self.client, bodies, Where.of(store))
        engine = Engine(store, bodies(), 2, self.events.append, on, placed=True)
        with on.heard(self.events.append):
            return engine.run(plan, self.root / out, cancel=cancel)

    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, StepNote)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    root = tmp_path_factory.mktemp("farm")
    environment = {"MEPOF_STORE": str(root / "store"), "MEPOF_SHARED_STORE": ""}
    offers = {"x86-64": 1.0, "memory": 1000.0}
    with started(2, 4, offers, environment, root / "dask", silence=10) as made:
        yield made, root


@pytest.fixture
def farm(client: tuple[Any, Path]) -> Farm:
    # A worker that died in the test before may be starting again.
    client[0].wait_for_workers(2, timeout=60)
    return Farm(*client)


def digests(run: RunResult) -> dict[str, str]:
    return {name: step.digest for name, step in run.steps.items()}


def alone(plan: Plan, root: Path) -> dict[str, str]:
    """The digests that a run in this process makes."""
    engine = Engine(Store(root / "alone"), bodies(), 2, lambda event: None)
    return digests(engine.run(plan, root / "alone-out"))


def test_digests_are_those_of_a_run_here(farm: Farm, tmp_path: Path) -> None:
    made = farm.run(DIAMOND)
    assert digests(made) == alone(DIAMOND, tmp_path)
    assert not any(step.cached for step in made.steps.values())
    assert all("runs in" in note for note in farm.notes()) and len(farm.notes()) == 4
    again = farm.run(DIAMOND)
    assert all(step.cached for step in again.steps.values())


@pytest.mark.parametrize("fault", ["dies", "hangs", "damages", "fills"])
def test_a_step_runs_elsewhere_if_its_worker_fails(farm: Farm, tmp_path: Path, fault: str) -> None:
    def plan(n: str) -> Plan:
        return plan_of(
            fake("before", n=n, fault=fault),
            fake("faulty", "before", once=f"{fault}:{tmp_path}/mark{n}"),
            fake("after", "faulty"),
        )

    made = farm.run(plan("1"))
    assert (tmp_path / "mark1").exists()
    (tmp_path / "other").mkdir()
    found = digests(made)
    twin = plan("1")
    assert found == alone(twin, tmp_path)
    assert all(farm_is_sound(farm.root, digest) for digest in found.values())
    if fault == "damages":
        assert any("made a wrong artifact" in note for note in farm.notes())
    if fault == "fills":
        assert any("has a full disk: run elsewhere" in note for note in farm.notes())


def test_a_run_ends_if_the_disks_of_all_workers_are_full(farm: Farm) -> None:
    with pytest.raises(StoreFull, match="no space left for"):
        farm.run(plan_of(fake("full", full=True)))


def farm_is_sound(root: Path, digest: str) -> bool:
    return Store(root / "store").intact(digest)


def test_an_error_of_a_step_arrives_as_it_was(farm: Farm, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="faulty: the link failed") as caught:
        farm.run(plan_of(fake("faulty", once=f"fails:{tmp_path}/mark")))
    assert caught.value.remedy is not None and "add memory" in caught.value.remedy
    assert [type(event) for event in farm.events][-1] is StepFailed
    with pytest.raises(WorkError, match="this is a bug in mepof: ZeroDivisionError"):
        farm.run(plan_of(fake("faulty", once=f"crashes:{tmp_path}/mark2")))


def test_an_interrupt_ends_the_steps_on_workers(farm: Farm, tmp_path: Path) -> None:
    cancel = threading.Event()

    def interrupt() -> None:
        while not (tmp_path / "mark").exists():
            pass
        cancel.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        farm.run(plan_of(fake("slow", once=f"waits:{tmp_path}/mark")), cancel=cancel)
    thread.join()
    assert farm.run(plan_of(fake("slow", once=f"waits:{tmp_path}/mark"))).steps["slow"].path


def test_what_reads_the_journal_runs_here(farm: Farm) -> None:
    made = farm.run(plan_of(fake("one", n="page"), fake("page", "one", kind="page")))
    assert made.steps["page"].path.is_dir()


def test_a_step_that_no_worker_can_do_says_why(farm: Farm, tmp_path: Path) -> None:
    (tmp_path / "lack").touch()
    with pytest.raises(EnvironmentLack, match=r"no worker can do.*clang is not installed"):
        farm.run(plan_of(fake("one", lacks_at=str(tmp_path / "lack"))))


def test_a_worker_that_lacks_something_is_named_once(farm: Farm, tmp_path: Path) -> None:
    plan = plan_of(
        *(fake(f"s{n}", n=n, lacks_on=str(tmp_path / "first"), needs="x86-64") for n in range(6))
    )
    assert len(farm.run(plan).steps) == 6
    (said,) = (note for note in farm.notes() if "clang" in note)
    assert re.fullmatch(r"the worker on .* cannot do s\d: clang is not installed.*elsewhere", said)


def notes_until(farm: Farm, step: Step, text: str) -> list[str]:
    """The notes of a run of one step, which a note with a text interrupts."""
    cancel = threading.Event()
    notes: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, StepNote):
            notes.append(event.text)
            if text in event.text:
                cancel.set()

    store = Store(farm.root / "store")
    store.open()
    on = OnCluster(farm.client, bodies, Where.of(store))
    engine = Engine(store, bodies(), 2, hear, on, placed=True)
    with pytest.raises(Interrupted):
        engine.run(plan_of(step), farm.root / "out", cancel=cancel)
    return notes


def test_workers_that_do_not_offer_what_a_step_needs_are_named(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = ({"cores": 2.0, OURS: 1.0, "x86-64": 1.0}, {"cores": 2.0, OURS: 1.0})
    monkeypatch.setattr(on_cluster, "offered", lambda info: {"tcp://a:1": a, "tcp://b:1": b})
    assert notes_until(farm, fake("lack", needs="x86-64 um"), "") == [
        "2 of 2 workers do not offer um: tcp://a:1, tcp://b:1; `mepof doctor` there says what is"
        " missing",
        "1 of 2 workers do not offer x86-64: tcp://b:1; `mepof doctor` there says what is missing",
    ]


def test_a_host_input_that_differs_on_the_worker_is_named(farm: Farm, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("content")
    step = Step("one", "fake", {}, {"file": HostInput(str(path))})
    assert farm.run(plan_of(step)).steps["one"].path.is_dir()


def test_a_step_waits_for_a_worker_that_offers_what_it_needs(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "WAITING_SECONDS", 0.2)
    assert notes_until(farm, fake("one", needs="phone"), "waits for a worker with 1 core, phone")


@pytest.mark.parametrize("resources", [{}, {"cores": 4.0, "memory": 900.0}])
def test_a_worker_that_is_not_of_mepof_gets_no_step_and_is_named(
    farm: Farm, resources: dict[str, float]
) -> None:
    ours: Any = {"resources": {"cores": 2.0, "memory": 500.0, OURS: 1.0}}
    other: Any = {"resources": resources}
    info = {"workers": {"a": ours, "b": other, "c": other}}
    client = SimpleNamespace(scheduler_info=lambda n_workers: info)
    store = Store(farm.root / "store")
    store.open()
    on = OnCluster(client, bodies, Where.of(store))
    assert list(on._workers()) == ["a"]
    said = waits({"cores": 3.0, OURS: SHARE}, on._others)
    assert said.startswith("waits for a worker with 3 cores; b, c cannot perform steps")
    assert "mepof.executor.preload" in said
    assert "b, c, d … cannot" in waits({}, ["b", "c", "d", "e"])


def test_needs_that_a_worker_offers_are_met(farm: Farm) -> None:
    plan = plan_of(*(fake(f"s{n}", n=n, needs="x86-64") for n in range(4)))
    assert len(farm.run(plan).steps) == 4


def test_parts_of_a_step_run_on_all_workers_at_a_time(farm: Farm, tmp_path: Path) -> None:
    def plan(**params: Json) -> Plan:
        return plan_of(fake("first", n="parts"), fake("all", "first", kind="spread", **params))

    meet = tmp_path / "meet"
    meet.mkdir()
    made = farm.run(plan(parts=6, meet=str(meet)))
    assert len(list(meet.iterdir())) == 2
    assert any(note.endswith(", 4 at a time") for note in farm.notes())
    assert digests(made) == alone(plan(parts=6, meet=str(meet)), tmp_path)
    log = Store(farm.root / "store").log("all", made.steps["all"].fingerprint).read_text()
    assert len(set(re.findall(r"made (part \d) in \d+", log))) == 6
    assert len(set(re.findall(r"made part \d in (\d+)", log))) == 2


@pytest.mark.parametrize("fault", ["dies", "fails", "waits"])
def test_a_part_whose_worker_fails(farm: Farm, tmp_path: Path, fault: str) -> None:
    mark = tmp_path / "mark"
    spread = fake("all", "first", kind="spread", parts=3, once=f"{fault}:{mark}")
    plan = plan_of(fake("first", n=f"part {fault}"), spread)
    if fault == "fails":
        with pytest.raises(WorkError, match="all: the link failed"):
            farm.run(plan)
    elif fault == "waits":
        cancel = threading.Event()

        def interrupt() -> None:
            while not mark.exists():
                pass
            cancel.set()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(Interrupted):
            farm.run(plan, cancel=cancel)
        thread.join()
    assert digests(farm.run(plan)) == alone(plan, tmp_path)
    assert mark.exists()


def test_a_part_that_no_worker_can_do_says_why(farm: Farm, tmp_path: Path) -> None:
    plan = plan_of(
        fake("first", n="lack"),
        fake("all", "first", kind="spread", parts=1, lacks_at=str(tmp_path / "lack")),
    )
    (tmp_path / "lack").touch()
    with pytest.raises(EnvironmentLack, match=r"no worker can do.*clang is not installed"):
        farm.run(plan)


def test_a_step_asks_for_no_more_than_the_largest_worker_has() -> None:
    small, large = {"cores": 2.0, "memory": 900.0}, {"cores": 8.0, "memory": 4000.0, "kvm": 1.0}
    workers = {"a": small, "b": large}
    ours = {OURS: SHARE}
    assert wanted_of(Resources(4, memory=500), workers) == {"cores": 4, "memory": 500, **ours}
    assert wanted_of(Resources(64, memory=9000), workers) == {"cores": 8, "memory": 4000, **ours}
    assert wanted_of(Resources(memory=9000, needs=frozenset({"kvm"})), workers) == {
        "kvm": SHARE,
        "cores": 1,
        "memory": 4000,
        **ours,
    }
    # A cluster of a test speaks of no memory.
    assert wanted_of(Resources(memory=500), {"a": {"cores": 2.0}}) == {"cores": 1, **ours}
    # A step whose parts run elsewhere only waits.
    assert wanted_of(Resources(64, part=Resources(memory=500)), workers) == ours


class Asked(Exception):
    """A step was submitted; the arguments are what it wants, and of which workers."""


def submitted(busy: set[str], home: str, cores: int) -> tuple[dict[str, float], Sequence[str]]:
    """How a step that claims a phone is asked for, of two workers that have one and one that has
    none."""
    each = {OURS: 1.0, "phone": 1.0}
    offers = {"small": {**each, "cores": 2.0}, "large": {**each, "cores": 8.0}, "none": {OURS: 1.0}}

    def submit(*words: object, **how: Any) -> None:
        raise Asked(how["resources"], how["workers"])

    info = {"workers": {name: {"resources": offer} for name, offer in offers.items()}}
    client = SimpleNamespace(scheduler_info=lambda n_workers: info, submit=submit, id="c")
    wanted = Resources(cores, Claim("phone"))
    body = SimpleNamespace(resources=lambda step: wanted)
    job: Any = SimpleNamespace(
        step=SimpleNamespace(id="one"), body=body, fingerprint="f", inputs={}, host=(),
        ingredients=None, artifacts={}, again=False,
    )  # fmt: skip
    store: Any = SimpleNamespace(log=lambda *words: "log")
    on = OnCluster(client, bodies, Where("a", None))
    with pytest.raises(Asked) as found:
        on._ask(job, store, {}, busy, lambda event: None, threading.Event(), on_cluster._Home(home))
    return found.value.args[0], found.value.args[1]


def test_a_step_asks_for_no_more_than_the_worker_has_that_has_its_phone() -> None:
    assert submitted(set(), "", 64)[0]["cores"] == 8
    wanted, workers = submitted(set(), "small", 64)
    assert (wanted["cores"], workers) == (2, ["small"])


def test_workers_that_keep_their_phone_for_others_are_asked_last() -> None:
    assert submitted({"small"}, "", 1)[1] == ["large"]
    busy = {"small", "large"}
    assert submitted(busy, "", 1)[1] is None  # all, again
    assert busy == set()


def test_the_workers_of_a_machine_share_its_memory(farm: Farm) -> None:
    farm.client.wait_for_workers(2)  # one may be starting again
    info = farm.client.scheduler_info(n_workers=-1)["workers"]
    assert [each["resources"]["memory"] for each in info.values()] == [500, 500]
    assert memory_of_machine() > 0


def test_a_machine_whose_store_is_elsewhere_needs_a_shared_one() -> None:
    assert Where("a", None).reaches(Where("a", "s"))
    assert Where("a", "s").reaches(Where("b", "s"))
    assert not Where("a", None).reaches(Where("b", None))
    assert not Where("a", "s").reaches(Where("b", "t"))


class Odd(MepofError):
    def __init__(self, one: int, *, two: object) -> None:
        super().__init__(f"odd {one}")
        self.two = two


def test_every_error_can_travel() -> None:
    back = unpacked(packed(Odd(1, two="x")))
    assert isinstance(back, Odd) and back.two == "x" and back.message == "odd 1"
    replaced = unpacked(packed(Odd(2, two=threading.Lock())))
    assert isinstance(replaced, WorkError) and replaced.message == "odd 2"
    assert isinstance(unpacked(packed(OSError(28, "full"))), OSError)


def test_two_machines_pass_artifacts_through_the_shared_store(tmp_path: Path) -> None:
    """Each worker and the client has a store of its own; one worker's pushes are damaged."""
    pytest.importorskip("zstandard")
    from mepof.plan.remote import Remote
    from mepof.plan.shared import SharedStore

    shared = str(tmp_path / "shared")
    environment = {"MEPOF_STORE": str(tmp_path / "worker"), "MEPOF_SHARED_STORE": shared}
    with ExitStack() as stack:
        made = stack.enter_context(started(2, 2, {}, environment, tmp_path / "dask"))
        store = SharedStore(tmp_path / "client", Remote(shared), lambda text: None)
        stack.callback(store.close)
        store.open()
        on = OnCluster(made, bodies, Where.of(store))
        events: list[Event] = []
        engine = Engine(store, bodies(), 2, events.append, on, placed=True)
        run = engine.run(DIAMOND, tmp_path / "out")
        assert digests(run) == alone(DIAMOND, tmp_path)
        assert [path.name for path in (store.root / "objects").iterdir()] == [
            run.steps["last"].digest
        ]
        text = store.log("left", run.steps["left"].fingerprint).read_text()
        assert "ran left" in text


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    from mepof.executor.local import local_executor
    from mepof.executor.protocol import Settings, Tls

    files = Tls(*(tmp_path / name for name in ("ca", "cert", "key")))
    with pytest.raises(InputError, match="--scheduler is for a cluster"):
        local_executor(Settings(tmp_path / "s", 1, scheduler="tcp://x:1"))
    with pytest.raises(InputError, match="makes its own certificates"):
        dask.dask_executor(Settings(tmp_path / "s", 1, tls=files))
    with pytest.raises(InputError, match="leave out --workers"):
        dask.dask_executor(Settings(tmp_path / "s", 1, scheduler="tcp://x:1", workers=2))
    with pytest.raises(InputError, match="does not exist"):
        from mepof.executor.cluster import security_of

        security_of(files)
    for path in (files.ca, files.cert, files.key):
        path.write_text("not PEM")
    with pytest.raises(InputError, match="cannot be used: "):
        security_of(files)
    assert carried.topic("x") == "mepof-x"


@dataclass
class Counting:
    """A client that counts calls whose result has not been taken."""

    waiting: int = 0
    most: int = 0

    def nthreads(self) -> dict[str, int]:
        return {"a": 5, "b": 3}

    def submit(self, do: Any, value: Any, **options: Any) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return SimpleNamespace(result=lambda timeout: self.taken(do(value)))

    def taken(self, result: Any) -> Any:
        self.waiting -= 1
        return result


def test_only_so_many_calls_and_results_are_kept_at_a_time() -> None:
    client = Counting()
    called = dask.calling(client, pytest.fail)(str, range(1000))
    assert list(called) == [str(each) for each in range(1000)]
    assert client.most == 4 * 8


def test_calls_that_no_worker_can_take_say_so_once() -> None:
    def result(timeout: float | None = None) -> str:
        if len(asked) < 3:
            raise TimeoutError
        return "made"

    def info(n_workers: int) -> dict[str, Any]:
        asked.append(n_workers)
        return {"workers": {"tcp://farm:1": {"resources": {"cores": 2.0}}}}

    def submit(do: Any, value: Any, **options: Any) -> Any:
        assert options["resources"] == {OURS: SHARE, "cores": 1}
        return SimpleNamespace(result=result, done=lambda: False)

    asked: list[int] = []
    said: list[str] = []
    client = SimpleNamespace(nthreads=lambda: {}, submit=submit, scheduler_info=info)
    assert list(dask.calling(client, said.append)(str, [1])) == ["made"]
    (line,) = said
    assert line.startswith("waits for a worker with 1 core; tcp://farm:1 cannot perform steps")


def test_what_a_call_raises_is_not_waited_for() -> None:
    def late(timeout: float | None = None) -> str:
        raise TimeoutError("of the call")

    future = SimpleNamespace(result=late, done=lambda: True)
    client = SimpleNamespace(nthreads=lambda: {}, submit=lambda *given, **options: future)
    with pytest.raises(TimeoutError, match="of the call"):
        list(dask.calling(client, pytest.fail)(str, [1]))
