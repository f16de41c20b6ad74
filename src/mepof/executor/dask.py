"""Runs programs on the machines of a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mepof.errors import InputError
from mepof.events import Sink, unheard
from mepof.executor.carried import Bodies, Where
from mepof.executor.cluster import DEFAULT_WORKERS, connected, started
from mepof.executor.local import copy_finished, copy_results
from mepof.executor.offers import has, offered, offers_of_machine, waits, wanted_of
from mepof.executor.on_cluster import WAITING_SECONDS, OnCluster
from mepof.executor.protocol import Finished, Settings
from mepof.executor.stores import check_store, one_at_a_time, store_of
from mepof.plan.body import Resources
from mepof.plan.engine import Engine
from mepof.plan.explain import Explanation, explain
from mepof.plan.model import Plan
from mepof.plan.pin import pinned
from mepof.plan.store import Store
from mepof.profile.fleet import Map
from mepof.steps import BODIES

# How many calls are submitted before the first result is taken: at least, and of each core.
_LEAST_AHEAD, _AHEAD = 16, 4


def _steps() -> Any:
    return BODIES.all()


@dataclass(frozen=True)
class DaskExecutor:
    """Runs plans on a cluster.

    Attributes:
        settings: where it is, or how large a cluster of this machine is.
        bodies: gives the body of each kind of step, here and on workers.
    """

    settings: Settings
    bodies: Bodies = _steps

    def __post_init__(self) -> None:
        check_store(self.settings.store, self.settings.shared)
        if self.settings.scheduler is None and self.settings.tls is not None:
            raise InputError(
                "a cluster of this machine makes its own certificates", "name a --scheduler"
            )
        if self.settings.scheduler is not None and self.settings.workers is not None:
            raise InputError(
                "the workers of a scheduler start on their own",
                "leave out --workers or --scheduler",
            )

    def explain(self, plan: Plan, sink: Sink = unheard) -> tuple[Explanation, ...]:
        """What a run of the plan would do; nothing is run."""
        bodies = self.bodies()
        with store_of(self.settings.store, self.settings.shared, sink) as store:
            return explain(pinned(plan, bodies, store.cache, sink), store, bodies)

    def run(self, plan: Plan, out: Path, sink: Sink) -> Finished:
        """Run a plan and copy its results to ``out``.

        Raises:
            MepofError: as of :meth:`mepof.plan.engine.Engine.run`; the cluster does not answer.
        """
        bodies = self.bodies()
        cancel = threading.Event()
        sink = one_at_a_time(sink)
        settings = self.settings
        with (
            store_of(settings.store, settings.shared, sink, cancel) as store,
            self._client(store) as client,
        ):
            plan = pinned(plan, bodies, store.cache, sink)
            store.open()
            on_cluster = OnCluster(client, self.bodies, Where.of(store))
            engine = Engine(store, bodies, settings.cores, sink, on_cluster, placed=True)
            with on_cluster.heard(sink):
                run = engine.run(plan, out, cancel=cancel, salvage=partial(copy_finished, out))
            return Finished(copy_results(run, out), run)

    @contextlib.contextmanager
    def _client(self, store: Store) -> Iterator[Any]:
        settings = self.settings
        if settings.scheduler is not None:
            with connected(settings.scheduler, settings.tls) as client:
                yield client
            return
        environment = {"MEPOF_STORE": str(store.root)}
        if settings.shared is not None:
            environment["MEPOF_SHARED_STORE"] = settings.shared
        with (
            tempfile.TemporaryDirectory() as scratch,
            started(
                settings.workers or DEFAULT_WORKERS,
                settings.cores,
                offers_of_machine(store.root),
                environment,
                Path(scratch),
            ) as client,
        ):
            yield client


@contextlib.contextmanager
def mapping(settings: Settings, say: Callable[[str], None]) -> Iterator[Map]:
    """Calls functions on the workers of a cluster: each value with one core.

    Args:
        say: shows the user a line.

    Raises:
        WorkError: the scheduler does not answer.
    """
    store = Store(settings.store)
    store.open()
    with DaskExecutor(settings)._client(store) as client:
        yield calling(client, say)


def calling(client: Any, say: Callable[[str], None]) -> Map:
    """Calls functions on the workers of a client.

    Args:
        say: called once with a line if no worker can be called.
    """
    wanted = wanted_of(Resources(), {})
    said = False

    def result(future: Any) -> Any:
        nonlocal said
        while True:
            try:
                return future.result(timeout=WAITING_SECONDS)
            except TimeoutError:
                if future.done():
                    return future.result()
                info = client.scheduler_info(n_workers=-1)
                ours = offered(info)
                if not said and not any(has(each, wanted) for each in ours.values()):
                    said = True
                    say(waits(wanted, sorted(info["workers"].keys() - ours.keys())))

    def run(do: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
        # Not all at once, so that neither the scheduler nor a worker keeps all that goes in or
        # comes out.
        most = max(_LEAST_AHEAD, _AHEAD * sum(client.nthreads().values()))
        futures: deque[Any] = deque()
        for each in values:
            futures.append(client.submit(do, each, pure=False, resources=wanted))
            if len(futures) >= most:
                yield result(futures.popleft())
        while futures:
            yield result(futures.popleft())

    return run


def dask_executor(settings: Settings) -> DaskExecutor:
    """The executor with these settings; the scheduler may come from ``$DASK_SCHEDULER_ADDRESS``."""
    scheduler = settings.scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS") or None
    return DaskExecutor(replace(settings, scheduler=scheduler))


EXECUTOR = dask_executor
