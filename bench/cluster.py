#!/usr/bin/env python3
"""Runs programs on one machine without a cluster, and on clusters of 1, 2 and 4 workers.

    bench/cluster.py [--again] [demo|boots]…

`demo` is the program of `make demo`; `boots` measures the kernels that it makes. Every run has a
store of its own, so it runs all steps and boots; only the compiler's cache is that of the default
store. Writes docs/benchmarks/cluster.json after each run and .md after each program, and continues
where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
from measure import program

from mepof.events import unheard
from mepof.executor.carried import Where
from mepof.executor.cluster import started
from mepof.executor.offers import offers_of_machine
from mepof.executor.on_cluster import OnCluster
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.plan.engine import Engine
from mepof.plan.model import Plan
from mepof.plan.pin import pinned
from mepof.plan.store import Store, default_store
from mepof.steps import BODIES

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "quickstart.g4"
RESULT = ROOT / "docs" / "benchmarks" / "cluster"
IMAGES = ROOT / "out" / "cluster"
#: What is run, and how the page calls it.
PROGRAMS = {
    "demo": "The demo",
    "boots": "The boots of a measurement",
}
BOOTS = "set seed 1.\neval {out}/plain.img;{out}/opt.img syscall;overhead;proc;pipe;file.\n"
WORKERS = (0, 1, 2, 4)
MAX_SHARE_PERCENT = 3.0
IDLE_SECONDS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", nargs="*", choices=[[], *PROGRAMS])
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        name, workers = given.one
        print(json.dumps(measured(text_of(name), int(workers))))
        return
    path = RESULT.with_suffix(".json")
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in given.name or PROGRAMS:
        text = text_of(name)
        if name == "boots":
            program.run(DEMO, IMAGES, None)
        if given.again or done.get(name, {}).get("program") != text:
            done[name] = {"program": text, "runs": {}}
        runs = done[name]["runs"]
        for workers in WORKERS:
            if str(workers) not in runs:
                runs[str(workers)] = of_child(name, workers)
                path.write_text(json.dumps(done, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(done))
        check(runs)
    print(f"wrote {RESULT.with_suffix('.md')}")


def text_of(name: str) -> str:
    """The text of a program."""
    if name == "demo":
        return DEMO.read_text(encoding="utf-8")
    return BOOTS.format(out=IMAGES.relative_to(ROOT))


def of_child(name: str, workers: int) -> dict[str, Any]:
    """What one run gave, in a process of its own, whose use of processors is its own."""
    argv = [sys.executable, __file__, "--one", name, str(workers)]
    print(f"{name}, {workers} workers", file=sys.stderr, flush=True)
    made = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def measured(text: str, workers: int) -> dict[str, Any]:
    """Run a program with a new store; with no workers, in this process and on one core."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, ExitStack() as stack:
        root = Path(directory)
        store = Store(root / "store")
        store.open()
        objects = default_store() / "cache" / "ccache"
        objects.mkdir(parents=True, exist_ok=True)
        (store.cache / "ccache").symlink_to(objects)
        plan = without_report(plan_of(Source("bench", text)), store)
        idle = None
        if workers == 0:
            began = Used.now()
            run = Engine(store, BODIES.all(), 1, unheard).run(plan, root / "out")
        else:
            client = stack.enter_context(
                started(
                    workers,
                    workers,
                    offers_of_machine(store.root),
                    {"MEPOF_STORE": str(store.root), "MEPOF_SHARED_STORE": ""},
                    root / "dask",
                )
            )
            client.wait_for_workers(workers)
            idle = used_idle()
            on = OnCluster(client, BODIES.all, Where.of(store))
            engine = Engine(store, BODIES.all(), workers, unheard, on, placed=True)
            began = Used.now()
            with on.heard(unheard):
                run = engine.run(plan, root / "out")
        used = Used.now() - began
        made = json.loads((run.steps["measure"].path / "evaluation.json").read_text())
        return {
            "used": asdict(used),
            "idle": None if idle is None else asdict(idle),
            "boots": sum(
                len(each["boots"]) for each in [*made["images"], made["same_build"]] if each
            ),
            "ended": made["ended"],
            "digests": {name: step.digest for name, step in run.steps.items()},
        }


@dataclass(frozen=True)
class Used:
    """Seconds of processors, user and system.

    Attributes:
        wall: seconds that passed.
        own: used by this process, which is the client and the scheduler.
        workers: used by what it started, with all that those started.
        machine: used by everything on this machine, or withheld from it by the machine below.
    """

    wall: float
    own: float
    workers: float
    machine: float

    @classmethod
    def now(cls) -> Used:
        """Until now."""
        this = psutil.Process()
        own, workers = of_process(this)
        for each in this.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # then its parent has what it used
                workers += sum(of_process(each))
        cpu = psutil.cpu_times()
        machine = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq + cpu.steal
        return cls(time.monotonic(), own, workers, machine)

    def __sub__(self, before: Used) -> Used:
        pairs = zip(astuple(self), astuple(before), strict=True)
        return Used(*(round(after - first, 2) for after, first in pairs))


def of_process(process: psutil.Process) -> tuple[float, float]:
    """Seconds that a process used, and those of its children that have ended."""
    used = process.cpu_times()
    return used.user + used.system, used.children_user + used.children_system


def without_report(plan: Plan, store: Store) -> Plan:
    """The plan without what runs every time and reads the journal."""
    steps = tuple(step for step in plan.steps if step.kind != "report")
    return pinned(replace(plan, steps=steps, results=()), BODIES.all(), store.cache, unheard)


def used_idle() -> Used:
    """What is used while nothing happens."""
    time.sleep(IDLE_SECONDS / 2)  # what the start left over
    began = Used.now()
    time.sleep(IDLE_SECONDS)
    return Used.now() - began


def of_run(run: dict[str, Any]) -> tuple[Used, Used | None]:
    """What a run used, and before it while nothing happened."""
    return Used(**run["used"]), None if run["idle"] is None else Used(**run["idle"])


def share_percent(used: Used, idle: Used | None = None) -> float:
    """Percent of client and scheduler in what the run computed.

    Args:
        idle: leave out what they would have used if nothing had happened.
    """
    own = used.own - (0 if idle is None else idle.own / idle.wall * used.wall)
    return 100 * own / (used.own + used.workers)


def check(runs: dict[str, Any]) -> None:
    """Fail if a cluster made something else, or its scheduler took too much."""
    wanted = runs["0"]["digests"]
    for workers, run in runs.items():
        if run["digests"] != wanted:
            raise SystemExit(f"with {workers} workers, the results differ")
        used, idle = of_run(run)
        if idle is not None and (share := share_percent(used, idle)) >= MAX_SHARE_PERCENT:
            raise SystemExit(f"with {workers} workers, {share:.1f} % is the scheduler's")


def table(title: str, runs: dict[str, Any]) -> str:
    """The section of the page about a program."""
    alone = runs["0"]
    wall = alone["used"]["wall"]
    rows = []
    for workers, run in runs.items():
        used, idle = of_run(run)
        same = "equal" if run["digests"] == alone["digests"] else "DIFFERENT"
        others = max(0.0, used.machine - used.own - used.workers) / used.wall
        name, shares = "none: one process, one core", " | | "
        if idle is not None:
            name = workers
            shares = f"{1000 * idle.own / idle.wall:.0f} ms/s "
            shares += f"| {share_percent(used):.2f} % | {share_percent(used, idle):.2f} %"
        rows.append(
            f"| {name} | {used.wall:.0f} s | {wall / used.wall:.2f} | {used.workers:.0f} s "
            f"| {used.own:.1f} s | {shares} | {others:.2f} | {same} |"
        )
    body = "\n".join(rows)
    return f"""## {title}

{len(alone["digests"])} steps, {alone["boots"]} boots for measuring.

| workers | wall time | as fast | workers | scheduler | idle | whole | share | others | digests |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{body}
"""


def page(done: dict[str, Any]) -> str:
    """The page of these runs."""
    tables = "\n".join(
        table(title, done[name]["runs"]) for name, title in PROGRAMS.items() if name in done
    )
    return f"""# What a cluster costs, and what it gains

`make bench-cluster` (`bench/cluster.py`) runs the program of `make demo`, and one that measures the
kernels that it makes, without a cluster and on clusters of processes with one core each, on this
machine ({os.cpu_count()} cores). Every run has a store of its own, so it runs all steps and boots;
objects that earlier builds on the machine have compiled come from the compiler's cache. All figures
are *native*.

{tables}
## What the columns say

- A build does not use more cores than its worker has, and the demo's builds wait for each other: on
  workers of one core, more of them speed up boots alone.
- *Workers* is user and system time of their processes and of all that they start, such as the
  emulator, during the run; *scheduler* that of client and scheduler, which are one process here. It
  looks after steps and events, and reads every artifact again.
- *Idle* is what that process computes in a second in which nothing happens, measured for
  {IDLE_SECONDS} s before the run, most of it for heartbeats, of which Dask has two a second of each
  worker. *Whole* is the scheduler's part in all computing of the run. It grows with what
  others compute on the machine: the workers then get less done in a second.
- *Share* is that without what idling for as long would have cost: what the scheduling of these
  steps and boots cost. It must be under {MAX_SHARE_PERCENT:.0f} %.
- *Others* is how many cores other programs kept busy meanwhile. With more than none, or more
  workers than cores, wall times say little, and [the simulation](farm.md) says what more machines
  give.
- *Digests* are those of all steps, compared with the run without a cluster.
"""


if __name__ == "__main__":
    if shutil.which("qemu-system-x86_64") is None:
        raise SystemExit("QEMU is not installed: run tools/setup")
    main()
