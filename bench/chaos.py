#!/usr/bin/env python3
"""Runs steps on a cluster of this machine while 200 faults occur.

    PYTHONPATH=tests/unit bench/chaos.py

Fails if not all have struck, or if the digests are not those of a run without a cluster. Writes
docs/benchmarks/chaos.md.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

from executor.chaos import FAULTS, Endured, endured
from executor.fake_steps import CUT_SECONDS

from mepof.executor.cluster import library

RESULT = Path(__file__).parents[1] / "docs" / "benchmarks" / "chaos.md"
WORKERS = 6
SILENCE_SECONDS = 30
COUNTS = {"dies": 50, "hangs": 15, "is_cut": 15, "fills": 80, "damages": 40, "lost": 40}


def main() -> None:
    # A worker that starts again is forked from a process that has loaded everything.
    os.environ["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"
    library()
    multiprocessing.set_forkserver_preload(["distributed", "executor.fake_steps"])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        made = endured(Path(directory), COUNTS, WORKERS, SILENCE_SECONDS)
    if made.struck != COUNTS:
        raise SystemExit(f"only these have struck: {dict(made.struck)}")
    if not made.same:
        raise SystemExit("the digests are not those of a run without a cluster")
    RESULT.write_text(page(made))
    print(f"wrote {RESULT}")


def page(made: Endured) -> str:
    """The page of a run."""
    rows = "\n".join(f"| {what} | {made.struck[kind]} |" for kind, what in FAULTS.items())
    of_workers = sum(made.struck[kind] for kind in FAULTS if kind != "lost")
    return f"""# What a cluster survives

`make bench-chaos` (`bench/chaos.py`) runs {made.steps} small steps by
[the executor `dask`](../executors/dask.md) on {WORKERS} worker processes of this machine
({os.cpu_count()} cores), in chains, in which each reads what the one before it made. Meanwhile,
{of_workers} faults affect workers, and others artifacts:

| fault | times |
| --- | --- |
{rows}

The run ended by itself after {made.seconds:.0f} s (*native*), and **the digests of all steps are
those of a run without a cluster**. {made.noted["made a wrong artifact"]} times, the executor said
that a worker had made a wrong artifact, and {made.noted["has a full disk"]} times that its disk was
full.

- A worker that does not respond for {SILENCE_SECONDS} s is restarted. In one that is
  partitioned, the thread that sends and receives is stopped, for {CUT_SECONDS:.0f} s if it were
  left alone. Its step keeps running, and finishes in the store while another worker is asked for
  it.
- The full disk is `/dev/full`, from which the step gets the kernel's own error.
- Wrong bytes are written over an artifact right after it was committed. Its worker gets no more
  steps, and is replaced, as somebody would replace such a machine.
- A vanished artifact is missed by the step that reads it, and the step that made it runs again.
"""


if __name__ == "__main__":
    main()
