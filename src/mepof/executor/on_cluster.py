"""Performs the steps of a run on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mepof.device.flashing import is_permitted
from mepof.errors import EnvironmentLack, Interrupted, StoreFull, WorkError
from mepof.events import Event, Sink, StepNote
from mepof.executor import carried
from mepof.executor.carried import Answer, Bodies, Request, Where
from mepof.executor.cluster import MAX_DEATHS
from mepof.executor.offers import has, lack, offered, room, waits, wanted_of
from mepof.executor.parts import Spread, perform_spread
from mepof.executor.runs import cancel as cancel_on_worker
from mepof.executor.runs import end as end_on_worker
from mepof.plan.body import TERMINAL, Resources
from mepof.plan.execute import Done, Job, execute
from mepof.plan.shared import SharedStore
from mepof.plan.store import ArtifactLost, Store

_POLL_SECONDS = 0.2
# After which a worker that keeps a device for another run is asked again.
_BUSY_SECONDS = 2.0
WAITING_SECONDS = 2.0
"""A step that nobody can take is reported, and looked at again, this often."""

_FRESH_SECONDS = 1.0
# How long a step waits for a worker that has not returned wrong artifacts.
_PATIENCE_SECONDS = 60.0


class LostScheduler(EnvironmentLack):
    """Nothing more can be asked of the cluster."""

    ends_run = True


class WorkersDied(WorkError):
    """So many workers died with the step that it seems to be at fault."""


@dataclass
class _Home:
    """Where the steps of a run that claim a device run, one at a time.

    Attributes:
        worker: its address; empty before the first of them has run.
    """

    worker: str = ""
    using: threading.Lock = field(default_factory=threading.Lock)


class OnCluster:
    """Performs steps on the workers of a cluster, as :data:`mepof.plan.execute.Perform`.

    A worker that dies or falls silent is Dask's to replace. One whose artifacts turn out to be
    wrong gets no more steps of this run.

    Args:
        client: Dask's.
        bodies: gives the body of each kind of step on workers.
        where: the stores of this machine.
    """

    def __init__(self, client: Any, bodies: Bodies, where: Where) -> None:
        self._client = client
        self._bodies = bodies
        self._where = where
        self._run = uuid.uuid4().hex
        self._made_by: dict[str, str] = {}
        self._distrusted: set[str] = set()
        self._said: set[str] = set()  # needs and workers of which the user knows what is lacking
        self._homes: dict[str, _Home] = {}  # by the device's name
        self._begun: dict[str, int] = {}
        self._most = 0  # workers, at any time
        self._asking = threading.Lock()
        self._asked = -math.inf
        self._known: dict[str, dict[str, float]] = {}
        self._others: list[str] = []  # addresses of workers that are not ours

    @contextlib.contextmanager
    def heard(self, sink: Sink) -> Iterator[None]:
        """Pass on the events of workers while the block runs; after it, workers keep nothing."""
        name = carried.topic(self._run)

        def hear(event: tuple[float, dict[str, Any]]) -> None:
            step = event[1].get("begun")
            if step is None:
                sink(carried.event_of(event[1]))
            else:
                self._begun[step] = self._begun.get(step, 0) + 1

        self._client.subscribe_topic(name, hear)
        try:
            yield
        finally:
            self._client.unsubscribe_topic(name)
            if self._homes:
                # A worker that has not answered yet may be any.
                where = [each.worker for each in self._homes.values()]
                with contextlib.suppress(Exception):  # they end it when they see that we are gone
                    self._client.run(
                        end_on_worker,
                        self._run,
                        workers=where if all(where) else None,
                        on_error="ignore",
                    )

    def __call__(
        self, job: Job, store: Store, emit: Callable[[Event], None], cancel: threading.Event
    ) -> Done:
        """Perform a step on a worker; one that reads the journal or the terminal, here.

        Raises:
            MepofError: as of :func:`mepof.plan.execute.execute`, or no worker can do it.
        """
        if job.journal is not None or TERMINAL in job.body.resources(job.step).needs:
            return execute(job, store, emit, cancel)
        device = job.body.resources(job.step).device
        if device is None or device.release is None:
            return self._performed(job, store, emit, cancel, None)
        home = self._homes.setdefault(device.name, _Home())
        # All of them run where the first one runs, which keeps the device for us.
        while not home.using.acquire(timeout=_POLL_SECONDS):
            if cancel.is_set():
                raise Interrupted("interrupted")
        try:
            return self._performed(job, store, emit, cancel, home)
        finally:
            home.using.release()

    def _performed(
        self,
        job: Job,
        store: Store,
        emit: Callable[[Event], None],
        cancel: threading.Event,
        home: _Home | None,
    ) -> Done:
        said = False
        unfit: dict[str, Exception] = {}
        busy: set[str] = set()
        while True:
            answer = self._ask(job, store, unfit, busy, emit, cancel, home)
            if answer.busy:
                busy.add(answer.worker)
                if not said:
                    emit(StepNote(job.step.id, "waiting: another run uses the device"))
                said = True
                self._begun.pop(job.step.id, None)
                if cancel.wait(_BUSY_SECONDS):
                    raise Interrupted("interrupted")
                continue
            if home is not None:
                home.worker = answer.worker
            if answer.unfit:
                unfit[answer.worker] = failure = answer.failure()
                if isinstance(failure, StoreFull):
                    emit(StepNote(job.step.id, f"{answer.worker} has a full disk: run elsewhere"))
                elif self._is_new(answer.worker):
                    emit(StepNote(job.step.id, f"{failure}: run elsewhere"))
                continue
            if answer.where != self._where:
                _keep_log(store.log(job.step.id, job.fingerprint), answer.log)
            if answer.action is None:
                raise self._failure(answer)
            if self._is_sound(store, answer):
                self._made_by[answer.action.artifact.digest] = answer.worker
                return Done(answer.action, answer.cached)
            self._distrusted.add(answer.worker)
            job = replace(job, again=True)
            emit(StepNote(job.step.id, f"{answer.worker} made a wrong artifact: run elsewhere"))

    def _is_new(self, lacking: str) -> bool:
        """Whether the user has not been told of this need, or worker, yet."""
        with self._asking:
            is_new = lacking not in self._said
            self._said.add(lacking)
            return is_new

    def _failure(self, answer: Answer) -> Exception:
        failure = answer.failure()
        if isinstance(failure, ArtifactLost):
            # One that is merely gone was removed by somebody else.
            self._distrusted |= {
                self._made_by[digest] for digest in failure.wrong if digest in self._made_by
            }
        return failure

    def _is_sound(self, store: Store, answer: Answer) -> bool:
        """Whether an artifact is what the worker says. One that is elsewhere is verified by whoever
        fetches it."""
        assert answer.action is not None and answer.where is not None
        digest = answer.action.artifact.digest
        if answer.where.store == self._where.store:
            if store.intact(digest):
                return True
            store.discard(digest)
            return False
        assert isinstance(store, SharedStore)
        store.expect(answer.action)
        return True

    def _ask(
        self,
        job: Job,
        store: Store,
        unfit: Mapping[str, Exception],
        busy: set[str],
        emit: Callable[[Event], None],
        cancel: threading.Event,
        home: _Home | None,
    ) -> Answer:
        """Have a worker perform a step, any but those that are unfit or distrusted.

        Args:
            busy: workers that keep the device for other runs, which are asked after the others;
                emptied once all have been asked.
            home: of the device that the step claims.
        """
        patience = _PATIENCE_SECONDS
        died = 0
        while True:
            workers = self._workers()
            self._most = max(self._most, len(workers))
            asked = job.body.resources(job.step)
            self._note_lacks(job, asked, workers, emit)
            fit = [name for name in workers if name not in unfit and name not in self._distrusted]
            if home is not None and home.worker in fit:
                fit = [home.worker]
            if workers and not fit:
                if (unfit and len(workers) == self._most) or patience <= 0:
                    raise self._nobody(job, unfit)
                # Those that died may be starting again.
                if cancel.wait(_POLL_SECONDS):
                    raise Interrupted("interrupted")
                patience -= _POLL_SECONDS
                continue
            # What a step wants depends on the workers that it is left with.
            wanted = wanted_of(asked, {name: workers[name] for name in fit})
            if busy:
                free = [n for n in fit if n not in busy and has(workers[n], wanted)]
                if not free:
                    busy.clear()
                fit = free or fit
            everywhere = len(fit) == len(workers)
            future = self._submit(job, store, workers, fit, wanted)
            try:
                answer = self._wait(future, job, wanted, fit, everywhere, emit, cancel)
            except WorkersDied:
                # Dask blames a death on every step that its worker had, even if it only waited.
                begun, self._begun[job.step.id] = self._begun.get(job.step.id, 0), 0
                died += 1
                if begun >= MAX_DEATHS or died > MAX_DEATHS:
                    raise
                continue
            if answer is not None:
                return answer

    def _note_lacks(
        self,
        job: Job,
        asked: Resources,
        workers: Mapping[str, Mapping[str, float]],
        emit: Callable[[Event], None],
    ) -> None:
        """Tell the user once of each thing that a step needs and not every worker has."""
        for need in sorted((asked.part or asked).needs):
            lacking = [name for name, offers in workers.items() if need not in offers]
            if lacking and self._is_new(need):
                emit(StepNote(job.step.id, lack(need, lacking, len(workers))))

    def _submit(
        self,
        job: Job,
        store: Store,
        workers: dict[str, dict[str, float]],
        fit: list[str],
        wanted: dict[str, float],
    ) -> Any:
        """Request a step of the workers that may do it; Dask's future of the answer."""
        request = Request(
            self._run,
            self._bodies,
            job.step,
            job.ingredients,
            job.artifacts,
            {name: str(job.inputs[name]) for name in job.host},
            int(wanted.get("cores", 1)),
            job.again,
            self._where,
            str(store.log(job.step.id, job.fingerprint)),
            is_permitted(),
            self._client.id,
        )
        done: tuple[Any, ...] = (carried.perform, request)
        part = job.body.resources(job.step).part
        if part is not None:
            each = wanted_of(part, {name: workers[name] for name in fit})
            width = sum(room(workers[name], each) for name in fit)
            spread = Spread(max(1, width), each, frozenset(workers) - frozenset(fit))
            done = (perform_spread, request, spread)
        return self._client.submit(
            *done,
            key=f"{job.step.id}-{job.fingerprint[:12]}-{uuid.uuid4().hex[:8]}",
            resources=wanted,
            workers=None if len(fit) == len(workers) else fit,
            pure=False,
        )

    def _wait(
        self,
        future: Any,
        job: Job,
        wanted: dict[str, float],
        fit: Sequence[str],
        everywhere: bool,
        emit: Callable[[Event], None],
        cancel: threading.Event,
    ) -> Answer | None:
        """The answer to a request; None if it should be asked otherwise.

        Args:
            fit: the workers that may do it.
            everywhere: they are all that there were.
        """
        # If its worker dies with the answer, Dask has it made again. We may stop to wait for that,
        # but not cancel it: steps share one request for their answers, which would end for all.
        answer = asyncio.run_coroutine_threadsafe(
            self._client.gather(future, asynchronous=True), self._client.loop.asyncio_loop
        )
        waited = 0.0
        said = False
        while True:
            wait([answer], timeout=_POLL_SECONDS)
            if answer.done():
                return _answer_of(answer, job)
            if cancel.is_set():
                self._client.cancel([future], force=True)
                with contextlib.suppress(Exception):  # the scheduler may be gone
                    self._client.run(cancel_on_worker, self._run, on_error="ignore")
                raise Interrupted("interrupted")
            waited += _POLL_SECONDS
            if waited >= WAITING_SECONDS:
                waited = 0.0
                if self._client.status not in ("running", "connecting"):
                    raise _lost_scheduler()
                workers = self._workers()
                if fit and workers and not any(name in workers for name in fit):
                    # They died, and Dask would wait for them: those started instead have new names.
                    self._client.cancel([future], force=True)
                    return None
                # Asked of all, it may also run on one that has come since.
                may = workers if everywhere else {n: workers[n] for n in fit if n in workers}
                if not any(has(each, wanted) for each in may.values()):
                    if may and wanted_of(job.body.resources(job.step), may) != wanted:
                        self._client.cancel([future], force=True)
                        return None
                    if not said:
                        emit(StepNote(job.step.id, waits(wanted, self._others)))
                        said = True

    def _workers(self) -> dict[str, dict[str, float]]:
        """What each worker of ours offers, by its address, a second ago at most.

        Every step that waits asks, and on a busy machine the scheduler would do little but answer.
        """
        with self._asking:
            if time.monotonic() - self._asked > _FRESH_SECONDS:
                info = self._client.scheduler_info(n_workers=-1)
                self._known = offered(info)
                self._others = sorted(info["workers"].keys() - self._known.keys())
                self._asked = time.monotonic()
            return self._known

    def _nobody(self, job: Job, unfit: Mapping[str, Exception]) -> Exception:
        full = [error for error in unfit.values() if isinstance(error, StoreFull)]
        if full and len(full) == len(unfit):
            return full[0]
        if unfit:
            reasons = "; ".join(sorted({str(error) for error in unfit.values()}))
            return EnvironmentLack(f"{job.step.id}: no worker can do this step: {reasons}")
        return WorkError(
            f"{job.step.id}: every worker has returned wrong artifacts",
            "check the memory and disks of " + ", ".join(sorted(self._distrusted)),
        )


def _answer_of(answer: Future[Answer], job: Job) -> Answer:
    try:
        return answer.result()
    except Exception as error:  # Dask's own: too many workers died, or the cluster is gone
        kind = type(error).__name__
        if kind == "KilledWorker":
            raise WorkersDied(
                f"{job.step.id}: every worker that ran this step died",
                "check the memory of the workers: a kernel's link takes gigabytes",
            ) from error
        if kind in ("CancelledError", "FutureCancelledError"):
            raise _lost_scheduler() from error
        raise


def _lost_scheduler() -> LostScheduler:
    return LostScheduler(
        "the scheduler is gone",
        "finished steps are kept; start it again and run the same command",
    )


def _keep_log(log: Path, text: bytes) -> None:
    with contextlib.suppress(OSError):
        log.write_bytes(text)
