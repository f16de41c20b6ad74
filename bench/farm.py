#!/usr/bin/env python3
"""Simulates a farm that builds, profiles and measures kernels all day.

    bench/farm.py [--take OUT] [--again]

The costs are those of a real run, kept in bench/measure/farm.json; ``--take`` rereads them from the
output directory of a run that made all of its steps. The simulation is compared with real runs of
steps that only wait, on 1, 2 and 4 workers of this machine. Writes docs/benchmarks/farm.json and
.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measure.farm import ALL, Day, Task, farm_of, simulate
from measure.replay import bodies

from mepof.events import unheard
from mepof.executor.carried import Where
from mepof.executor.cluster import started
from mepof.executor.on_cluster import OnCluster
from mepof.plan.engine import Engine
from mepof.plan.journal import read_runs
from mepof.plan.model import Json, Plan, Step, StepInput
from mepof.plan.store import Store

ROOT = Path(__file__).parents[1]
COSTS = ROOT / "bench" / "measure" / "farm.json"
RESULT = ROOT / "docs" / "benchmarks" / "farm"
KERNELS, COMPILERS, LOADS = 100, 5, 10
WORKERS = (16, 32, 64, 128, 256, 512)
LINKS = (100, 1000)
DAY_SECONDS = 86400
# Of the runs that the simulation is compared with: so many kernels, compilers and loads, and each
# step takes so much of its time.
SMALL, SCALE = (1, 2, 2), 1 / 60
VALIDATED = (1, 2, 4)
TRIVIAL = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--take", type=Path, help="output directory of a run")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    given = parser.parse_args()
    if given.take is not None:
        COSTS.write_text(json.dumps(costs_of(given.take), indent=1) + "\n")
    costs = json.loads(COSTS.read_text())
    path = RESULT.with_suffix(".json")
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not given.again else {}
    if done.get("costs") != costs:
        done = {"costs": costs, "validation": {}}
    if "overhead" not in done:
        done["overhead"] = overhead()
    for workers in VALIDATED:
        if str(workers) not in done["validation"]:
            print(f"{workers} workers", file=sys.stderr, flush=True)
            done["validation"][str(workers)] = compared(costs, workers, done["overhead"])
            path.write_text(json.dumps(done, indent=1) + "\n")
    tasks = farm_of(costs["steps"], KERNELS, COMPILERS, LOADS)
    days = {
        (workers, link): simulate(tasks, workers, costs["cores"], done["overhead"], link)
        for link in LINKS
        for workers in WORKERS
    }
    path.write_text(json.dumps(done, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(done, tasks, days))
    print(f"wrote {RESULT.with_suffix('.md')}")


def costs_of(out: Path) -> dict[str, Any]:
    """What the steps of a run cost when they were made.

    Raises:
        SystemExit: the run did not end, or its store no longer has what it made.
    """
    run = read_runs(out / "journal.jsonl")[-1]
    store = Store(Path(run.store))
    steps = []
    for planned in run.planned:
        step = run.steps.get(planned.step)
        if step is None or step.digest is None or not store.object(step.digest).is_dir():
            raise SystemExit(f"{out} has no result of {planned.step}")
        artifact = store.object(step.digest)
        size = sum(path.stat().st_size for path in artifact.rglob("*") if path.is_file())
        boots = 0
        if step.kind == "measure":
            made = json.loads((artifact / "evaluation.json").read_text())
            groups = [*made["images"], *made["relinked"], made["same_build"]]
            boots = sum(len(each["boots"]) for each in groups if each)
        steps.append(
            {
                "step": planned.step,
                "kind": planned.kind,
                "inputs": list(planned.inputs),
                "seconds": step.seconds,
                "cores": run.cores,
                "megabytes": round(size / 1e6, 3),
                "boots": boots,
            }
        )
    return {"program": run.program, "cores": run.cores, "steps": steps}


def overhead() -> float:
    """Seconds that client and scheduler compute for a step that does nothing."""
    steps = tuple(replayed(f"s{number}", 0.0, 1, (), 0) for number in range(TRIVIAL))
    used, _ = on_cluster(Plan("", 0, steps, ()), 2)
    return round(used / TRIVIAL, 4)


def compared(costs: Mapping[str, Any], workers: int, seconds: float) -> dict[str, float]:
    """Seconds of a small farm on workers of this machine, and what the simulation says."""
    tasks = {
        name: Task(task.seconds * SCALE, task.cores, task.reads)
        for name, task in farm_of(costs["steps"], *SMALL).items()
    }
    simulated = simulate(tasks, workers, costs["cores"], seconds, 1.0)
    boots = {read for task in tasks.values() for read in task.reads if " boot" in read}
    steps = []
    for name, task in tasks.items():
        if name in boots:
            continue
        parts = [tasks[read] for read in task.reads if read in boots]
        reads = parts[0].reads if parts else task.reads
        took = parts[0].seconds if parts else task.seconds
        cores = 64 if task.cores == ALL else task.cores
        steps.append(replayed(name, took, cores, reads, len(parts)))
    _, real = on_cluster(Plan("", 0, tuple(steps), ()), workers, costs["cores"])
    return {"real": round(real, 1), "simulated": round(simulated.seconds, 1)}


def replayed(name: str, seconds: float, cores: int, reads: tuple[str, ...], parts: int) -> Step:
    """A step that only waits."""
    params: dict[str, Json] = {"seconds": seconds, "cores": cores, "parts": parts, "name": name}
    return Step(name, "replay", params, {f"i{n}": StepInput(r) for n, r in enumerate(reads)})


def on_cluster(plan: Plan, workers: int, cores: int = 1) -> tuple[float, float]:
    """Seconds that this process computes for a plan, and seconds that it takes."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        root = Path(directory)
        store = Store(root / "store")
        store.open()
        environment = {"MEPOF_STORE": str(store.root), "MEPOF_SHARED_STORE": ""}
        with started(workers, workers * cores, {}, environment, root / "dask") as client:
            client.wait_for_workers(workers)
            on = OnCluster(client, bodies, Where.of(store))
            engine = Engine(store, bodies(), workers, unheard, on, placed=True)
            before, began = own_seconds(), time.monotonic()
            engine.run(plan, root / "out")
            return own_seconds() - before, time.monotonic() - began


def own_seconds() -> float:
    """Seconds that this process has computed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def page(done: Mapping[str, Any], tasks: Mapping[str, Task], days: Mapping[Any, Day]) -> str:
    """The page of the simulation."""
    costs = done["costs"]
    work = sum(t.seconds * (costs["cores"] if t.cores == ALL else 1) for t in tasks.values())
    largest = max(costs["steps"], key=lambda step: float(step["megabytes"]))
    validation = "\n".join(
        f"| {workers} | {row['real']:.1f} s | {row['simulated']:.1f} s "
        f"| {100 * (row['simulated'] / row['real'] - 1):+.1f} % |"
        for workers, row in done["validation"].items()
    )
    rows = "\n".join(
        f"| {workers} | {link} MB/s | {day.seconds / 3600:.1f} h | {100 * day.cores:.0f} % "
        f"| {100 * day.link:.0f} % | {100 * day.scheduler:.0f} % | {day.bottleneck} |"
        for (workers, link), day in days.items()
    )
    enough = {
        link: next((w for w in WORKERS if days[w, link].seconds <= DAY_SECONDS), None)
        for link in LINKS
    }
    answers = ", ".join(
        f"{count or 'none of these numbers'} with {link} MB/s" for link, count in enough.items()
    )
    return f"""# Beyond these machines

`make bench-farm` (`bench/farm.py`) replays the costs of a real run for {KERNELS} kernels, each with
{COMPILERS} compilers and {LOADS} loads: {len(tasks):,} tasks, {work / 3600:,.0f} core-hours. What
does not depend on a kernel, compiler or load is made once, as in a store that all share. All are
*modelled*, from seconds that the journal of the run has (`bench/measure/farm.json`) and sizes of
its artifacts. A worker is like the machine of that run, with {costs["cores"]} cores. That machine
was shared with other work while it ran, so the seconds are longer than those of an idle one; take
your own with `bench/farm.py --take OUT`.

| workers | store | takes | cores busy | link busy | scheduler busy | busiest |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Workers for which a day suffices: {answers}.

The largest artifact is that of the step `{largest["step"]}`, {largest["megabytes"]:,.0f} MB, which
every worker reads that builds from it: the more workers, the more often it is read, so that more of
them can take longer. The store's link is shared by all workers. A worker keeps what it has read,
and each artifact is
written once, as large as it is; the shared store compresses, so the link is less busy. While a step
waits for the link, its cores are taken but not busy. A task costs client and scheduler
{1000 * done["overhead"]:.1f} ms, measured with {TRIVIAL} steps that do nothing. Merges of
[a fleet's profiles](../profile-engine.md#merge-of-a-fleet) are not among the tasks.

## How accurate the simulation is

The same simulation of {SMALL[0]} kernel, {SMALL[1]} compilers and {SMALL[2]} loads, each step with
1/{round(1 / SCALE)} of its time, and a real run of these steps by the executor `dask` on this
machine ({os.cpu_count()} cores): steps wait for their time and compute nothing, so workers do not
compete for cores. *Real* is *native* wall time.

| workers | real | simulated | difference |
| --- | --- | --- | --- |
{validation}
"""


if __name__ == "__main__":
    main()
