#!/usr/bin/env python3
"""Merges generated profiles of a fleet: one merge, the tree, the tree on workers, LLVM's tool.

    bench/fleet.py [PROFILE.afdo] [--profiles 10000] [--workers 2] [--again]

Each profile has most functions of a real one, by default the first of the store, each with the
counts of one of some variants. Every merge is a process of its own. Writes
docs/benchmarks/fleet.json after each merge and .md at the end, and continues where it stopped.
Fails if the results are not the same to the bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from measure.child import measured
from measure.demo import processor
from measure.pieces import put_together, taken_apart

from mepof import _engine
from mepof.executor.cluster import started
from mepof.executor.dask import calling
from mepof.plan.store import default_store
from mepof.process import run
from mepof.profile.fleet import Aging, members, merge_fleet

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "fleet"
VARIANTS = 24
# Of the functions, as many have run on a machine.
SHARE = 0.8
DAYS = 30
DAY_SECONDS = 86400
# The newest day, at noon: the same profiles, weights and names whenever they are generated.
NEWEST = 1_760_011_200
LLVM = "llvm-profdata-22"
# All at once take more than 24 GiB; these half as much.
LLVM_FILES = 1000
OURS = ("one merge", "tree", "tree on workers")
MERGES = (*OURS, "tree, merged before", LLVM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("profile", type=Path, nargs="?", help="[default: one of the store]")
    parser.add_argument("--profiles", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        merge(given.one[0], Path(given.one[1]), Path(given.one[2]), given.workers)
        return
    compare(given.profile or of_store(), given.profiles, given.workers, given.again)


def compare(profile: Path, count: int, workers: int, again: bool) -> None:
    """Make every merge that an earlier call has not, and write the page."""
    digest = hashlib.sha256(profile.read_bytes()).hexdigest()
    work = ROOT / "build" / "bench" / f"fleet-{count}-{digest[:12]}"
    work.mkdir(parents=True, exist_ok=True)
    fleet = generated(profile, count, work)
    asked = {"profile": digest, "profiles": count, "workers": workers}
    path = RESULT.with_suffix(".json")
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not again else {}
    if done.get("asked") != asked:
        shutil.rmtree(work / "cache", ignore_errors=True)
        size = sum(each.stat().st_size for each in fleet.iterdir())
        done = {"asked": asked, "bytes": size, "merges": {}}
    cores = sorted(os.sched_getaffinity(0))
    for name in MERGES:
        if name in done["merges"]:
            continue
        print(name, file=sys.stderr, flush=True)
        output = work / "merged"
        argv = [sys.executable, __file__, "--workers", str(workers)]
        argv += ["--one", name, str(fleet), str(output)]
        usage = measured(argv, cores, work / "log")
        done["merges"][name] = {
            "seconds": round(usage.seconds, 1),
            "cpu_seconds": round(usage.cpu_seconds, 1),
            "peak_mib": usage.peak_bytes >> 20,
            "load": round(os.getloadavg()[0], 1),
            "digest": hashlib.sha256(output.read_bytes()).hexdigest(),
        }
        done["machine"] = {"processor": processor(), "cores": len(cores)}
        path.write_text(json.dumps(done, indent=1) + "\n")
    if len({done["merges"][name]["digest"] for name in (*OURS, "tree, merged before")}) != 1:
        raise SystemExit(f"the merges differ: see {path}; the profiles are in {fleet}")
    RESULT.with_suffix(".md").write_text(page(done))
    print(f"wrote {RESULT.with_suffix('.md')}")
    shutil.rmtree(work)


def of_store() -> Path:
    """A profile that a run has made."""
    found = sorted(default_store().glob("objects/*/kernel.afdo"))
    if not found:
        raise SystemExit("the store has no AutoFDO profile: run examples/autofdo-propeller.g4")
    return found[0]


def merge(name: str, fleet: Path, output: Path, workers: int) -> None:
    """Make one merge in this process."""
    found, _ = members([str(fleet)], {})
    aging = Aging(Fraction(7), max(each.day for each in found))
    weighted = [(fleet / each.name, each.weight * aging.weight(each.day)) for each in found]
    work = fleet.parent
    match name:
        case "one merge":
            _engine.merge(weighted, output, "autofdo-text")
        case "tree" | "tree, merged before":
            merge_fleet(found, aging, output, "autofdo-text", work / "cache", map)
        case "tree on workers":
            cache = work / "cache-of-workers"
            shutil.rmtree(cache, ignore_errors=True)
            with started(workers, workers, {}, {}, work / "dask") as client:
                merge_fleet(found, aging, output, "autofdo-text", cache, calling(client, print))
        case tool:
            # It keeps every file that it reads in memory.
            parts = []
            for first in range(0, len(weighted), LLVM_FILES):
                parts.append(work / f"part{first}")
                batch = weighted[first : first + LLVM_FILES]
                merge_by_llvm(tool, batch, parts[-1], "--extbinary", workers)
            merge_by_llvm(tool, [(part, 1) for part in parts], output, "--text", workers)


def merge_by_llvm(
    tool: str, weighted: Sequence[tuple[Path, int]], output: Path, form: str, threads: int
) -> None:
    """Merge weighted sample profiles by LLVM's tool."""
    inputs = output.with_name("inputs")  # more files than fit on a command line
    inputs.write_text("\n".join(f"{weight},{path}" for path, weight in weighted))
    options = [form, f"--num-threads={threads}", f"--input-files={inputs}", "-o", str(output)]
    run([tool, "merge", "--sample", *options])


def generated(profile: Path, count: int, work: Path) -> Path:
    """A directory of profiles of the same build; those that are there already are kept."""
    text, binary = work / "text", work / "binary"
    _engine.merge([(profile, 1)], text, "autofdo-text")
    whole = text.read_text()
    chance = random.Random(7)
    variants = []
    for _ in range(VARIANTS):
        text.write_text(re.sub(r"(?m)(?<=:)( ?)(\d+)(?=[ :]|$)", partial(varied, chance), whole))
        _engine.merge([(text, 1)], binary, "autofdo")
        variants.append(taken_apart(binary.read_bytes()))
    fleet = work / "fleet"
    fleet.mkdir(exist_ok=True)
    for number in range(count):
        path = fleet / f"{number:05}.afdo"
        if path.exists():
            continue
        made = work / "made"
        made.write_bytes(put_together(variants, random.Random(number), SHARE))
        moment = NEWEST - DAY_SECONDS * (number % DAYS)
        os.utime(made, (moment, moment))
        made.rename(path)
        if number % 1000 == 999:
            print(f"{number + 1} profiles", file=sys.stderr, flush=True)
    return fleet


def varied(chance: random.Random, count: re.Match[str]) -> str:
    """A count as another machine has it."""
    return f"{count[1]}{int(int(count[2]) * chance.uniform(0.1, 10))}"


def page(done: dict[str, Any]) -> str:
    """The page of these merges."""
    asked, merges = done["asked"], done["merges"]
    mib = done["bytes"] / (1 << 20)
    llvm = merges[LLVM]
    rows = "\n".join(
        f"| {name} | {row['seconds']:.1f} s | {mib / row['seconds']:.0f} MiB/s "
        f"| {llvm['seconds'] / row['seconds']:.1f} | {row['cpu_seconds']:.1f} s "
        f"| {llvm['cpu_seconds'] / row['cpu_seconds']:.1f} | {row['peak_mib']} MiB "
        f"| {row['load']} |"
        for name, row in ((each, merges[each]) for each in MERGES)
    )
    return f"""# How fast the profiles of a fleet are merged

`bench/fleet.py --profiles {asked["profiles"]}` (`make bench-fleet`: 10,000) generates
{asked["profiles"]:,} profiles of one kernel from a real one: {mib:.0f} MiB, of {DAYS} days, with a
half-life of a week. It merges them in five ways on {done["machine"]["cores"]} cores of
{done["machine"]["processor"]}, all *native*. The first four give the same file, to the bit.

| | wall time | throughput | against LLVM | computing | against LLVM | largest process | load |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

- *one merge* is one call of the engine with all files; *tree* is what
  [`mepof profile merge DIRECTORY`](../profile-engine.md#merge-of-a-fleet) does in one process, and
  *on workers* in {asked["workers"]} processes of a Dask cluster, whose start is counted. Its
  largest process is the client, in which Dask's scheduler runs; a worker needs what a group takes.
- *merged before*: nothing is new. A day's new profiles cost their groups beside it.
- *computing* is user and system time of all processes. With a *load* above the number of cores,
  others computed as well, and computing says more than wall time.
- `{LLVM}` gets the same files and weights, {LLVM_FILES:,} at a time, and then what it
  made of these: it keeps what it has read in memory, and all at once took more than 24 GiB.
"""


if __name__ == "__main__":
    main()
