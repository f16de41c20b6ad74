"""A preload of Dask's workers: any worker that Dask starts offers what mepof's steps ask for.

Dask's settings name it (``distributed.worker.preload``, or ``dask worker --preload``), so its own
deployments by SSH, Slurm and Kubernetes need nothing else of mepof.
"""

from __future__ import annotations

import os
from typing import Any

from mepof.executor.offers import offers_of_machine
from mepof.executor.stores import check_store, default_shared
from mepof.plan.store import default_store


async def dask_setup(worker: Any) -> None:
    """Offer cores, memory, what ``mepof doctor`` finds, and the devices of ``$MEPOF_OFFER``.

    Cores and memory are what Dask gave this worker: its threads, and its share of the machine.

    Raises:
        MepofError: the store cannot be used; the worker does not start.
    """
    store = default_store()
    check_store(store, default_shared())
    offers = {
        **offers_of_machine(store),
        **dict.fromkeys(os.environ.get("MEPOF_OFFER", "").split(), 1.0),
        "cores": float(worker.state.nthreads),
    }
    limit = worker.memory_manager.memory_limit
    if limit:
        offers["memory"] = float(limit >> 20)
    # The scheduler has not heard of this worker yet; it will be told all of it.
    worker.state.total_resources.update(offers)
    worker.state.available_resources.update(offers)
