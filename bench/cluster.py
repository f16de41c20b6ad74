#!/usr/bin/env python3
"""Measures two images on one machine without a cluster, and on clusters of 1, 2 and 4 workers.

    bench/cluster.py [IMAGE IMAGE] [--repetitions N-M] [--again]

By default, the images are the first two x86-64 kernels of the store. Every run has a store of its
own, so it makes all boots. Writes docs/benchmarks/cluster.json after each run and .md at the end,
and goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mepof.events import unheard
from mepof.executor.carried import Where
from mepof.executor.cluster import started
from mepof.executor.dask import OnCluster
from mepof.executor.offers import offers_of_machine
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.image import read_image
from mepof.plan.engine import Engine
from mepof.plan.model import Plan
from mepof.plan.pin import pinned
from mepof.plan.store import Store, default_store
from mepof.steps import BODIES

RESULT = Path(__file__).parents[1] / "docs" / "benchmarks" / "cluster"
WORKERS = (0, 1, 2, 4)
MAX_SHARE_PERCENT = 3.0
IDLE_SECONDS = 20
PROGRAM = "set seed 1.\nset repetitions {repetitions}.\neval {first};{second} pipe;proc.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("images", type=Path, nargs="*")
    parser.add_argument("--repetitions", default="5-9")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if len(given.images) not in (0, 2):
        parser.error("give two images, or none")
    first, second = given.images or of_store()
    text = PROGRAM.format(repetitions=given.repetitions, first=first, second=second)
    if given.one is not None:
        print(json.dumps(measured(text, given.one)))
        return
    path = RESULT.with_suffix(".json")
    done: dict[str, Any] = {}
    if path.exists() and not given.again:
        done = json.loads(path.read_text())
    if done.get("repetitions") != given.repetitions:
        done = {"repetitions": given.repetitions, "runs": {}}
    for workers in WORKERS:
        if str(workers) not in done["runs"]:
            done["runs"][str(workers)] = of_child(first, second, given.repetitions, workers)
            done["cores"] = os.cpu_count()
            path.write_text(json.dumps(done, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(done))
    print(f"wrote {RESULT.with_suffix('.md')}")
    check(done)


def of_store() -> tuple[Path, Path]:
    """The first two kernels of the store that this machine can boot."""
    store = Store(default_store())
    found = []
    for action in sorted(store.actions(), key=lambda each: each.made_at):
        kernel = store.object(action.artifact.digest) / "kernel"
        if kernel.is_file() and read_image(kernel).arch == "x86-64":
            found.append(kernel)
    if len(found) < 2:
        raise SystemExit("the store has no two kernels: run examples/quickstart.g4")
    return found[0], found[1]


def of_child(first: Path, second: Path, repetitions: str, workers: int) -> dict[str, Any]:
    """What one run gave, in a process of its own, whose use of processors is its own."""
    options = ["--repetitions", repetitions, "--one", str(workers)]
    argv = [sys.executable, __file__, str(first), str(second), *options]
    print(f"{workers} workers", file=sys.stderr, flush=True)
    made = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def measured(text: str, workers: int) -> dict[str, Any]:
    """Run a program with a new store; with no workers, in this process and on one core."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, ExitStack() as stack:
        root = Path(directory)
        store = Store(root / "store")
        store.open()
        plan = without_report(plan_of(Source("bench", text)), store)
        began, idle = time.monotonic(), 0.0
        if workers == 0:
            before = own_seconds()
            run = Engine(store, BODIES.all(), 1, unheard).run(plan, root / "out")
        else:
            cluster = stack.enter_context(ExitStack())
            client = cluster.enter_context(
                started(
                    workers,
                    workers,
                    offers_of_machine(store.root),
                    {"MEPOF_STORE": str(store.root), "MEPOF_SHARED_STORE": ""},
                    root / "dask",
                )
            )
            client.wait_for_workers(workers)
            idle = idle_share()
            began, before = time.monotonic(), own_seconds()
            on = OnCluster(client, BODIES.all, Where.of(store))
            engine = Engine(store, BODIES.all(), workers, unheard, on, placed=True)
            with on.heard(unheard):
                run = engine.run(plan, root / "out")
        seconds, own = time.monotonic() - began, own_seconds() - before
        if workers:
            cluster.close()  # only then are its processes counted
        made = json.loads((run.steps["measure"].path / "evaluation.json").read_text())
        return {
            "seconds": round(seconds, 1),
            "own_seconds": round(own, 2),
            "idle_share": round(idle, 5),
            "workers_seconds": round(spent(resource.RUSAGE_CHILDREN), 1),
            "load": round(os.getloadavg()[0], 1),
            "boots": sum(
                len(each["boots"]) for each in [*made["images"], made["same_build"]] if each
            ),
            "ended": made["ended"],
            "digests": {name: step.digest for name, step in run.steps.items()},
        }


def without_report(plan: Plan, store: Store) -> Plan:
    """The plan without what runs every time and reads the journal."""
    steps = tuple(step for step in plan.steps if step.kind != "report")
    return pinned(replace(plan, steps=steps, results=()), BODIES.all(), store.cache, unheard)


def idle_share() -> float:
    """Seconds that this process computes in each second in which nothing happens."""
    time.sleep(IDLE_SECONDS / 2)  # what the start left over
    began, before = time.monotonic(), own_seconds()
    time.sleep(IDLE_SECONDS)
    return (own_seconds() - before) / (time.monotonic() - began)


def own_seconds() -> float:
    """Seconds that this process has computed: client and scheduler."""
    return spent(resource.RUSAGE_SELF)


def spent(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def share_percent(run: dict[str, Any]) -> float:
    """Percent of all computing that is not the workers'."""
    return percent(run["own_seconds"], run["workers_seconds"])


def share_alone_percent(workers: int, run: dict[str, Any], cores: int) -> float:
    """The share if nobody else computed: what this process does each second whatever happens, it
    would do for as long only as the workers then need."""
    seconds = run["workers_seconds"] / min(workers, cores)
    spared = run["idle_share"] * max(0.0, run["seconds"] - seconds)
    return percent(max(0.0, run["own_seconds"] - spared), run["workers_seconds"])


def percent(own: float, workers: float) -> float:
    return 100 * own / (own + workers)


def check(done: dict[str, Any]) -> None:
    """Fail if a cluster made something else, or its scheduler would take too much."""
    wanted = done["runs"]["0"]["digests"]
    for workers, run in done["runs"].items():
        if run["digests"] != wanted:
            raise SystemExit(f"with {workers} workers, the results differ")
        if workers == "0":
            continue
        share = share_alone_percent(int(workers), run, done["cores"])
        if share >= MAX_SHARE_PERCENT:
            raise SystemExit(f"with {workers} workers, {share:.1f} % is the scheduler's")


def page(done: dict[str, Any]) -> str:
    """The page of these runs."""
    runs = done["runs"]
    alone = runs["0"]
    rows = []
    for workers, run in runs.items():
        name = "none: this process, one core" if workers == "0" else workers
        same = "equal" if run["digests"] == alone["digests"] else "DIFFERENT"
        shares = " | | "
        if workers != "0":
            alone_percent = share_alone_percent(int(workers), run, done["cores"])
            shares = f"{1000 * run['idle_share']:.0f} ms/s | {share_percent(run):.2f} % "
            shares += f"| {alone_percent:.2f} %"
        rows.append(
            f"| {name} | {run['seconds']:.0f} s | {alone['seconds'] / run['seconds']:.2f} "
            f"| {run['workers_seconds']:.0f} s | {shares} | {run['load']} | {same} |"
        )
    table = "\n".join(rows)
    return f"""# What a cluster costs, and what it gains

`make bench-cluster` (`bench/cluster.py`) runs one program on this machine ({done["cores"]} cores)
without a cluster, and on clusters of processes with one core each. The program measures two kernels
with the metrics `pipe` and `proc`, {done["repetitions"]} boots of each; it made {alone["boots"]}
boots until {alone["ended"]}. Every run has a store of its own, so it makes all steps and boots.

| workers | wall time | as fast | workers compute | idle | not theirs | alone | load | digests |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{table}

- *Digests* are those of all steps, compared with the run without a cluster.
- All figures are *native*, but *alone*, which is *modelled*.
- *Not theirs* is the share of client and scheduler, which are one process here, in all computing
  (user and system time). This process looks after steps and events, and reads every artifact again.
- *Idle* is what this process computes while nothing happens, most of it for the workers'
  heartbeats, of which Dask has two a second of each. It does so for as long as a run takes, so
  others that compute on the machine raise its share: the workers get less done in a second.
- *Alone* is the share if nobody else computed, so that the run took what the workers compute, on
  their cores, and this process were idle the less. It must be under {MAX_SHARE_PERCENT:.0f} %.
- *Load* is the machine's average of the last minute at the end of the run. Above the number of
  cores, others computed as well, or the workers shared cores: then wall times say little, and
  [the simulation](farm.md) says what more machines give.
"""


if __name__ == "__main__":
    if shutil.which("qemu-system-x86_64") is None:
        raise SystemExit("QEMU is not installed: run tools/setup")
    main()
