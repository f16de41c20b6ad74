"""Spreads the parts of a step over workers: what runs on the worker that has the step itself."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mepof.errors import Interrupted, WorkError
from mepof.executor.carried import (
    Answer,
    Request,
    perform,
    perform_part,
    worker_store,
)
from mepof.executor.cluster import MAX_DEATHS
from mepof.executor.runs import cancel, stop_of
from mepof.plan.body import Elsewhere

_POLL_SECONDS = 0.2
# How often it is looked whether a worker is left that may do a part.
_LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class Spread:
    """How a step spreads.

    Attributes:
        width: how many parts workers perform at a time.
        wanted: what a part asks of its worker.
        without: addresses of workers that perform none.
    """

    width: int
    wanted: Mapping[str, float]
    without: frozenset[str]


def perform_spread(request: Request, spread: Spread) -> Answer:
    """Perform a step in this process, which is a worker, and its parts on all of them.

    The step only waits for its parts, so it leaves its thread to others.
    """
    from distributed import get_client, secede

    calls = _Calls(get_client(), request, spread)
    secede()  # type: ignore[no-untyped-call]
    try:
        return perform(request, Elsewhere(spread.width, calls))
    finally:
        calls.end()


class _Calls:
    """Has workers perform parts, from any thread."""

    def __init__(self, client: Any, request: Request, spread: Spread) -> None:
        self._client = client
        self._stop = stop_of(request.run)
        self._spread = spread
        self._over = threading.Event()
        self._pending: set[Any] = set()
        self._died: dict[str, int] = {}
        self._writing = threading.Lock()
        self._log = worker_store().log(request.step.id, request.ingredients.fingerprint())
        # Parts that nobody needs any more are interrupted, and nothing else of the run.
        self._request = replace(
            request,
            run=f"{request.run}-{uuid.uuid4().hex[:8]}",
            cores=max(1, int(spread.wanted["cores"])),
        )

    def end(self) -> None:
        """Interrupt the parts that still run."""
        self._over.set()
        if self._pending:
            self._client.cancel(list(self._pending), force=True)
            self._client.run(cancel, self._request.run, on_error="ignore")

    def __call__(self, name: str) -> bytes:
        without = set(self._spread.without)
        failure: Exception = WorkError(f"{self._request.step.id}: no worker is left for {name}")
        while True:
            workers = self._others(without)
            if workers is not None and not workers:
                raise failure
            answer = self._answer(name, workers)
            if answer is None:
                continue
            if not answer.unfit:
                break
            without.add(answer.worker)
            failure = answer.failure()
        if answer.part is None:
            raise answer.failure()
        return answer.part

    def _others(self, without: set[str]) -> list[str] | None:
        """All workers but those; None for all."""
        if not without:
            return None
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [address for address in known if address not in without]

    def _answer(self, name: str, workers: list[str] | None) -> Answer | None:
        """The answer of one of these workers; None if another one should be asked."""
        future = self._client.submit(
            perform_part,
            self._request,
            name,
            key=f"{self._request.step.id}-{name.replace(' ', '-')}-{uuid.uuid4().hex[:8]}",
            resources=self._spread.wanted,
            workers=workers,
            pure=False,
        )
        self._pending.add(future)
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        waited = 0.0
        try:
            while not done.wait(_POLL_SECONDS):
                if self._stop.is_set() or self._over.is_set():
                    raise Interrupted("interrupted")
                waited += _POLL_SECONDS
                if waited >= _LOOK_SECONDS and workers is not None:
                    waited = 0.0
                    known = self._client.scheduler_info(n_workers=-1)["workers"]
                    if not any(address in known for address in workers):
                        self._client.cancel([future], force=True)
                        return None
            answer: Answer = future.result()
        except Interrupted:
            raise  # `end` interrupts it
        except Exception as error:
            if type(error).__name__ != "KilledWorker":
                raise
            # Perhaps while it only waited for its turn there.
            self._died[name] = self._died.get(name, 0) + 1
            if self._died[name] < MAX_DEATHS:
                return None
            raise WorkError(
                f"every worker that performed {name} died", "check the memory of the workers"
            ) from error
        self._pending.discard(future)
        with self._writing, self._log.open("ab") as log:
            log.write(answer.log)
        return answer
