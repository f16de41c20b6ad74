"""What a client and a worker send each other, and the worker's part: one step.

Everything here runs on workers, so it loads no more of Dask than it must.
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mepof.device.flashing import permitted
from mepof.errors import MepofError, StoreFull, WorkError
from mepof.events import Event, Sink, StepNote, StepProgress
from mepof.executor.runs import Busy, held, stop_of, watch
from mepof.executor.stores import default_shared
from mepof.plan.action import Action, Artifact
from mepof.plan.body import Elsewhere, Resources, StepBody
from mepof.plan.digest import HostDigests
from mepof.plan.execute import Job, execute, execute_part
from mepof.plan.fingerprint import Ingredients, body_of
from mepof.plan.model import HostInput, Step
from mepof.plan.remote import Remote
from mepof.plan.shared import SharedStore
from mepof.plan.store import Store, default_store
from mepof.process import look_again
from mepof.toolchain.programs import NUMBER

Bodies = Callable[[], Mapping[str, StepBody]]

_EVENT_SECONDS = 0.2
_MAX_LOG_BYTES = 1 << 20
# Of what a tool says of its version.
_MAX_SHOWN = 100


@dataclass(frozen=True)
class Where:
    """The stores of a machine, by names that do not depend on paths.

    Attributes:
        store: of its own directory.
        shared: of the remote behind it, if there is one.
    """

    store: str
    shared: str | None

    @classmethod
    def of(cls, store: Store) -> Where:
        """The stores behind an open store."""
        shared = store.remote_identity if isinstance(store, SharedStore) else None
        return cls(store.identity, shared)

    def reaches(self, other: Where) -> bool:
        """Whether an artifact that one of them makes can be read by the other."""
        return self.store == other.store or (
            self.shared is not None and self.shared == other.shared
        )


@dataclass(frozen=True)
class Request:
    """A step that a worker is asked to perform.

    Attributes:
        run: a name of the run, for events and for an interrupt.
        bodies: gives the body of each kind.
        host: path of every host input, by name.
        cores: how many it may use.
        client: the stores of who asks.
        log: path of the step's log there.
        flash: who asks lets it flash phones.
        asker: Dask's name of who asks.
    """

    run: str
    bodies: Bodies
    step: Step
    ingredients: Ingredients
    artifacts: Mapping[str, Artifact]
    host: Mapping[str, str]
    cores: int
    again: bool
    client: Where
    log: str
    flash: bool
    asker: str


@dataclass(frozen=True)
class Answer:
    """What became of a step.

    Attributes:
        worker: the worker's address.
        action: what it made; None if it failed, or was asked for a part.
        part: what the part gave.
        cached: it was in the worker's store.
        error: why it failed, pickled.
        unfit: the worker cannot do such a step, or has a full disk: try another one.
        busy: it keeps the device for another run: ask again.
        log: the end of the step's log.
        where: the worker's stores.
    """

    worker: str
    action: Action | None = None
    part: bytes | None = None
    cached: bool = False
    error: bytes | None = None
    unfit: bool = False
    busy: bool = False
    log: bytes = b""
    where: Where | None = None

    def failure(self) -> Exception:
        """Why it failed."""
        assert self.error is not None
        return unpacked(self.error)


class Unfit(WorkError):
    """This worker cannot perform the step, and another one may."""


def perform(request: Request, parts: Elsewhere | None = None) -> Answer:
    """Perform a step in this process, which is a worker.

    Args:
        parts: performs parts of it on other workers.
    """

    def whole(job: Job, store: Store, log: Path, emit: Sink, stop: threading.Event) -> Answer:
        with held(request.run, job.resources.device):
            done = execute(replace(job, parts=parts), store, emit, stop)
        return Answer("", done.action, cached=done.cached)

    return _answered(request, request.step.id, whole)


def perform_part(request: Request, name: str) -> Answer:
    """Perform a part of a step in this process, which is a worker."""

    def part(job: Job, store: Store, log: Path, emit: Sink, stop: threading.Event) -> Answer:
        return Answer("", part=execute_part(job, name, store, log, emit, stop))

    return _answered(request, f"{request.step.id}-{name.replace(' ', '-')}", part)


def _answered(
    request: Request,
    name: str,
    make: Callable[[Job, Store, Path, Sink, threading.Event], Answer],
) -> Answer:
    """What becomes of a request.

    Args:
        name: of its log.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    stop = stop_of(request.run)
    watch(worker, request.asker, request.run)
    try:
        store = worker_store()
    except (MepofError, OSError) as error:
        return Answer(worker.address, error=packed(error), unfit=True)
    log = store.log(name, request.ingredients.fingerprint())
    where = Where.of(store)
    try:
        # At once, as the step may kill this process.
        begun = {"begun": request.step.id}
        sync(worker.loop, worker.scheduler.log_event, topic=topic(request.run), msg=begun)
        job = _job(request, store, where, stop)
        with permitted(request.flash):
            made = make(job, store, log, _Events(worker.log_event, request.run), stop)
    except Busy:
        return Answer(worker.address, busy=True)
    except (Unfit, StoreFull) as error:
        return Answer(worker.address, error=packed(error), unfit=True, where=where)
    except Exception as error:
        if isinstance(error, MepofError) and error.remedy and where != request.client:
            error.remedy = _read_there(error.remedy, log, request.log)
        return Answer(worker.address, error=packed(error), log=_tail(log), where=where)
    return replace(made, worker=worker.address, log=_tail(log), where=where)


def _read_there(remedy: str, log: Path, copied: str) -> str:
    """A remedy for a user of another machine, to which the log is copied.

    Args:
        copied: its path there.
    """
    script = str(log.with_suffix(".sh"))
    return remedy.replace(script, f"{script} on {socket.gethostname()}").replace(str(log), copied)


@cache
def _opened(root: Path, shared: str | None) -> Store:
    store = Store(root) if shared is None else SharedStore(root, Remote(shared), _unheard)
    store.open()
    return store


def worker_store() -> Store:
    """The store of this worker, as its environment says.

    Raises:
        MepofError: it cannot be used.
    """
    store = _opened(default_store(), default_shared())
    if isinstance(store, SharedStore):
        store.try_again()
        if store.remote_identity is None:
            store.check_remote()
    return store


def _unheard(text: str) -> None:
    pass


def _job(request: Request, store: Store, where: Where, stop: threading.Event) -> Job:
    here = f"the worker on {socket.gethostname()}"
    if not where.reaches(request.client):
        kept = store.remote.url if isinstance(store, SharedStore) else store.root
        raise Unfit(
            f"{here} keeps artifacts where this machine cannot read them: {kept}",
            "give both the same --shared-store, and mount it on both",
        )
    # What the program says of a path is relative to the directory of who asks.
    inputs = {**request.step.inputs}
    inputs |= {name: HostInput(path) for name, path in request.host.items()}
    step = replace(request.step, inputs=inputs)
    body = body_of(step, request.bodies())
    look_again()  # an upgrade since the last step would not be seen
    try:
        tools = dict(body.identity(step))
    except MepofError as error:
        raise Unfit(f"{here} cannot do {step.id}: {error}") from error
    wanted = request.ingredients
    found = Ingredients.of(step, body, wanted.inputs, tools)
    if found.fingerprint() != wanted.fingerprint():
        others = _differences(tools, wanted.tools) or "another version of mepof"
        raise Unfit(
            f"{here} would make {step.id} with other tools: {others}",
            "install the same on all machines",
        )
    paths = {name: store.object(each.digest) for name, each in request.artifacts.items()}
    digests = HostDigests(store.host_memory)
    for name, text in request.host.items():
        try:
            fits = digests.digest(Path(text), stop) == wanted.inputs[name]
        except MepofError:
            fits = False
        if not fits:
            raise Unfit(
                f"{text} is not on {here}, or differs there",
                "put it where all workers see it under the same path, or name a tarball or git",
            )
        paths[name] = Path(text)
    return Job(
        step,
        body,
        wanted,
        wanted.fingerprint(),
        paths,
        request.artifacts,
        frozenset(request.host),
        Resources(request.cores, body.resources(step).device),
        None,
        request.again,
    )


def _differences(ours: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """The tools that differ, with the versions of those that have one."""
    names = sorted(name for name in {*ours, *wanted} if ours.get(name) != wanted.get(name))
    shown = []
    for name in names:
        both = [each.get(name, "none") for each in (ours, wanted)]
        # Others are digests, or the text of a file.
        is_version = any(NUMBER.search(each) for each in both) and max(map(len, both)) < _MAX_SHOWN
        shown.append(f"{name} ({both[0]}, not {both[1]})" if is_version else name)
    return ", ".join(shown)


class _Events:
    """Sends events to the client, by way of the scheduler."""

    def __init__(self, send: Callable[[str, dict[str, Any]], None], run: str) -> None:
        self._send = send
        self._topic = topic(run)
        self._last = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case StepNote():
                self._send(self._topic, {"step": event.step, "text": event.text})
            case StepProgress():
                now = time.monotonic()
                if now - self._last > _EVENT_SECONDS:
                    self._last = now
                    self._send(self._topic, {**vars(event)})
            case _:
                pass  # of the terminal, which no worker has


def topic(run: str) -> str:
    """The topic of a run's events."""
    return f"mepof-{run}"


def event_of(message: Mapping[str, Any]) -> Event:
    """The event in a message of a worker."""
    if "unit" in message:
        return StepProgress(
            message["step"], message["done"], message["total"], message["unit"], message["text"]
        )
    return StepNote(message["step"], message["text"])


def _tail(log: Path) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_LOG_BYTES))
            return file.read()
    except OSError:
        return b""


def packed(error: Exception) -> bytes:
    """An error as bytes: its type and attributes, whatever its constructor takes."""
    try:
        data = pickle.dumps((type(error), error.args, vars(error)))
        unpacked(data)
    except Exception:  # an attribute that cannot be pickled
        text = error.message if isinstance(error, MepofError) else str(error)
        return pickle.dumps((WorkError, (text,), {"message": text, "remedy": None}))
    return data


def unpacked(data: bytes) -> Exception:
    """The error in these bytes, which a worker of ours has sent."""
    kind, arguments, attributes = pickle.loads(data)
    error: Exception = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error
