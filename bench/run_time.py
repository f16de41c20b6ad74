"""How long a run takes, against one build of the plain kernel, and what it compiles.

    bench/run_time.py [--store DIR] [RUN…]

Runs one program after the other in a fresh store with a fresh ccache: the plain kernel as kbuild
compiles it, and as mepof does; the quickstart, the quickstart again, the quickstart with another
option, scenario or seed, the quickstart's profile on another point release, AutoFDO with Propeller,
and AutoFDO beside it. An hour on two cores. With names of runs, only these follow the plain
kernels.
``--store`` names the store, which is kept: with the same one, an interrupted benchmark continues.
Writes docs/benchmarks/time.json and .md after every run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import demo, program

from mepof.errors import EnvironmentLack, InputError
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.plan.critical_path import critical_path
from mepof.plan.journal import read_runs
from mepof.plan.model import HostInput, Plan
from mepof.process import run as run_program

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "time"
EXAMPLES = ROOT / "examples"
WHOLE, PLAIN = "whole", "plain"
# The point release of Debian's before the newest; both have a plain kernel in the comparison.
RELEASE = "debian:linux-source-6.12=6.12.115-2~deb12u1"


@dataclass(frozen=True)
class Run:
    """A program that is timed.

    Attributes:
        cold: the plain kernel that is in the store is part of it: its cost is added.
    """

    title: str
    text: str
    cold: bool = False


@dataclass(frozen=True)
class Cost:
    """What a run took.

    Attributes:
        wall: seconds from its start to its end.
        cpu: seconds of all its processes, user and system.
        compiled: files of which ccache had no object, of the kernel and of its build tools.
        path: seconds of its critical path, without waiting for cores.
        steps: seconds of each step that ran.
    """

    wall: float
    cpu: float
    compiled: int
    path: float
    steps: dict[str, float]

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.wall + other.wall,
            self.cpu + other.cpu,
            self.compiled + other.compiled,
            self.path + other.path,
            {**other.steps, **self.steps},
        )


def runs() -> dict[str, Run]:
    """What is timed, in order. Each follows on those before it, in the same store."""
    quickstart = (EXAMPLES / "quickstart.g4").read_text(encoding="utf-8")
    both = (EXAMPLES / "autofdo-propeller.g4").read_text(encoding="utf-8")
    first = "opt debian:linux-source-6.12 autofdo rand kbench O2.\n"
    again = "opt debian:linux-source-6.12 pgo rand kbench O2.\n"
    reused = f"{again}set name release.\nrecomp {RELEASE} opt.profdata O2.\n"
    release = changed(changed(quickstart, again, reused), "opt.img", "release.img")
    alone = changed(changed(both, first, ""), "opt.img;opt2.img", "opt.img")
    kernel = "set config slim.\nbuild debian:linux-source-6.12.\n"
    return {
        WHOLE: Run("one plain kernel, all of every file compiled", f"set share off.\n{kernel}"),
        PLAIN: Run("one plain kernel, files compiled from what they use", kernel),
        "quickstart": Run("quickstart, empty store", quickstart, cold=True),
        "warm": Run("quickstart again", quickstart),
        "option": Run("another option, `NoPGSO`", changed(quickstart, " O2.", " O2;NoPGSO.")),
        "scenario": Run("another scenario, `trav`", changed(quickstart, " rand ", " trav ")),
        "seed": Run("another seed", changed(quickstart, "set seed 1.", "set seed 2.")),
        "release": Run("another point release, the profile used again", release),
        "propeller": Run("`autofdo+propeller`, empty store", alone, cold=True),
        "both": Run("then `autofdo` beside it", both),
    }


def changed(text: str, old: str, new: str) -> str:
    """A program with one word replaced, which must be there."""
    if old not in text:
        raise InputError(f"the example no longer has {old.strip()!r}", "edit bench/run_time.py")
    return text.replace(old, new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    known = runs()
    parser.add_argument("--store", type=Path)
    parser.add_argument("run", nargs="*", metavar="RUN", help=f"of {', '.join(known)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.run) - set(known):
        parser.error(f"there is no run {sorted(unknown)[0]}: choose of {', '.join(known)}")
    if shutil.which("ccache") is None:
        raise EnvironmentLack("ccache is not installed", "install it: runs share objects by it")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        store = arguments.store or out / "store"
        # A run that has ended would find its results in the store.
        ended = store / "run-times.json"
        if store.exists() and any(store.iterdir()) and not ended.exists():
            raise InputError(f"{store} is not empty", "name a directory that does not exist")
        costs = json.loads(ended.read_text()) if ended.exists() else {}
        store.mkdir(parents=True, exist_ok=True)
        ended.write_text(json.dumps(costs), encoding="utf-8")
        for name in ("quickstart", "both"):
            prepare(known[name], store, out / "prepare")
        for name in dict.fromkeys([WHOLE, PLAIN, *(arguments.run or known)]):
            if name not in costs:
                costs[name] = asdict(timed(known[name], store, out / name))
                ended.write_text(json.dumps(costs), encoding="utf-8")
            record(costs)


def record(costs: dict[str, Any]) -> None:
    """Write the results."""
    known = runs()

    def total(name: str) -> Cost:
        cost = Cost(**costs[name])
        return cost + Cost(**costs[PLAIN]) if known[name].cold else cost

    whole = total(WHOLE)
    results = {
        "machine": {"cores": os.cpu_count(), "processor": demo.processor()},
        "runs": {name: summary(total(name), whole) for name in costs},
    }
    RESULT.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(page(results), encoding="utf-8")


def prepare(run: Run, store: Path, out: Path) -> None:
    """Make what is no kernel and needs none: the source tree, the guest, plugins, suites."""
    plan = plan_of(Source.read(_written(run, out)))
    made: set[str] = set()
    for step in plan.steps:
        inputs = {given.step for given in step.inputs.values() if not isinstance(given, HostInput)}
        if inputs <= made and step.kind != "kernel-build":
            made.add(step.id)
    steps = tuple(step for step in plan.steps if step.id in made)
    some = Plan(plan.program, plan.seed, steps, ())
    LocalExecutor(store, os.cpu_count() or 1).run(some, out, lambda event: None)


def timed(run: Run, store: Path, out: Path) -> Cost:
    """Run a program as a user would."""
    file = _written(run, out)
    compiled, cpu, began = _compiled(store), _cpu(), time.monotonic()
    program.run(file, out, store)
    wall = time.monotonic() - began
    journal = read_runs(out)[-1]
    return Cost(
        wall=round(wall, 1),
        cpu=round(_cpu() - cpu, 1),
        compiled=_compiled(store) - compiled,
        path=round(sum(link.seconds for link in critical_path(journal)), 1),
        steps={s.step: s.seconds for s in journal.steps.values() if s.state == "done"},
    )


def _written(run: Run, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    file = out / "program.g4"
    file.write_text(run.text, encoding="utf-8")
    return file


def _cpu() -> float:
    """Seconds of CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _compiled(store: Path) -> int:
    """How many files have been compiled so far: ccache had neither the object of the file nor that
    of what it uses of its headers."""
    whole = store / "cache" / "ccache"
    misses, _ = _looked_up(whole)
    return misses - _looked_up(whole / "pruned")[1]


def _looked_up(cache: Path) -> tuple[int, int]:
    """How many objects ccache has not found in a directory, and has found by a file's text."""
    if not cache.exists():
        return 0, 0
    environment = {**os.environ, "CCACHE_DIR": str(cache)}
    shown = run_program(["ccache", "--print-stats"], env=environment).output
    counts = dict(line.split("\t") for line in shown.splitlines() if "\t" in line)
    return int(counts["cache_miss"]), int(counts["preprocessed_cache_hit"])


def summary(cost: Cost, whole: Cost) -> dict[str, Any]:
    """What is kept of a run: its cost, and its ratios to one plain kernel that shares nothing."""
    return {
        **asdict(cost),
        "ratio": {
            "wall": round(cost.wall / whole.wall, 3),
            "cpu": round(cost.cpu / whole.cpu, 3),
        },
        "path_percent": round(100 * cost.path / cost.wall, 1),
    }


def page(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = [
        f"| {run.title} | {r['wall']:,.0f} | {r['ratio']['wall']:.2f} | {r['cpu']:,.0f} "
        f"| {r['ratio']['cpu']:.2f} | {'all' if name == WHOLE else format(r['compiled'], ',')} "
        f"| {r['path_percent']:.0f} |"
        for name, run in runs().items()
        if (r := results["runs"].get(name)) is not None
    ]
    steps = [
        f"| {run.title} | {_longest(results['runs'][name]['steps'])} |"
        for name, run in runs().items()
        if name in results["runs"] and results["runs"][name]["steps"]
    ]
    machine = results["machine"]
    return _PAGE.format(
        cores=machine["cores"],
        processor=machine["processor"],
        release=_release(results["runs"]),
        rows="\n".join(rows),
        steps="\n".join(steps),
    )


def _release(runs: dict[str, Any]) -> str:
    """What another point release takes of a run with an empty store."""
    if not {"quickstart", "release"} <= runs.keys():
        return ""
    seconds, cpu, compiled = (
        f"{100 * runs['release'][key] / runs['quickstart'][key]:.0f} %"
        for key in ("wall", "cpu", "compiled")
    )
    return _RELEASE.format(seconds=seconds, cpu=cpu, compiled=compiled)


def _longest(steps: dict[str, float]) -> str:
    """The steps that took more than five seconds, the longest first."""
    known = sorted(steps.items(), key=lambda each: -each[1])
    return ", ".join(f"`{name}` {seconds:.0f}" for name, seconds in known if seconds > 5)


_PAGE = """# How long a run takes

`make bench-time` writes this page: {cores} cores, {processor}.

The runs follow each other in one store, which is empty at first, as is its ccache; the source
tree, the guest's programs and QEMU's plugins are in it before the clock starts. *To one kernel*
is the ratio to the first row, a kernel that is built as without ccache. Seconds are of the wall
and suffer from other load on the machine; CPU seconds are of all processes. *Compiled* are the
files of kernels and their build tools of which ccache had no object. *Path* is the share of the
wall time in which a step of the critical path ran, the chain of steps that decided when the run
ended; in the rest, these steps waited for cores.

A run with an empty store contains the plain kernel of the second row.
{release}
| | seconds | to one kernel | CPU seconds | to one kernel | compiled | path, % |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Seconds of each step above five:

| | steps |
| --- | --- |
{steps}
"""

_RELEASE = """
Another point release takes {seconds} of the seconds of the quickstart with an empty store, {cpu}
of its CPU seconds and {compiled} of its compiled files. It builds both kernels of the comparison
from its source, without the kernel that is profiled and the training. A header that every file
includes has changed, so every file is preprocessed, and compiled if that matters to [what it uses
of its headers](../decisions/0037-files-are-compiled-from-what-they-use.md). From 6.12.115 to
6.12.117, `linux/fs.h`, `linux/device.h`, `linux/interrupt.h` and `asm-generic/bitops/le.h` have
changed, among others.
"""


if __name__ == "__main__":
    main()
