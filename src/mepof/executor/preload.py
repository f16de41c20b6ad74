"""A preload of Dask's workers: any worker that Dask starts offers what mepof's steps ask for.

Dask's settings name it (``distributed.worker.preload``, or ``dask worker --preload``), so its own
deployments by SSH, Slurm and Kubernetes need nothing else of mepof.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from mepof.errors import MepofError
from mepof.executor.cluster import OURS, check_releases
from mepof.executor.offers import offers_of_machine
from mepof.executor.stores import check_store, default_shared
from mepof.plan.store import default_store


async def dask_setup(worker: Any) -> None:
    """Offer cores, memory, what ``mepof doctor`` finds, and the devices of ``$MEPOF_OFFER``.

    Cores and memory are what Dask gave this worker: its threads, and its share of the machine. If
    it cannot perform steps, such as without a store, its process ends: Dask would let it join.
    """
    try:
        theirs = await worker.scheduler.versions(packages=["mepof"])
        check_releases(worker.scheduler.address, theirs)
        store = default_store()
        check_store(store, default_shared())
        offers = offers_of_machine(store)
    except MepofError as error:
        print(f"mepof: {error}", file=sys.stderr, flush=True)
        os._exit(error.exit_status)
    offers |= dict.fromkeys(os.environ.get("MEPOF_OFFER", "").split(), 1.0)
    offers[OURS] = 1.0
    offers["cores"] = float(worker.state.nthreads)
    limit = worker.memory_manager.memory_limit
    if limit:
        offers["memory"] = float(limit >> 20)
    # The scheduler has not heard of this worker yet; it will be told all of it.
    worker.state.total_resources.update(offers)
    worker.state.available_resources.update(offers)
