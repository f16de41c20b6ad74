"""Native cycles of kernel code with and without a profile, on User-Mode Linux.

    bench/native_cycles.py [--dry-run] [--store DIR] [--runs N] [--rounds N] [--relinked N]
        [--core N]

Builds the kernels of bench/native_cycles/pgo.g4 and relinks each in further layouts, then times
the load of kernel code (docs/suites/kload.md) in all of them in turn, pinned to one core, with a
copy of the first kernel as its A/A control. Writes docs/benchmarks/native.json and .md. Exits
with 1, without verdicts, where the copy differs from its original.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from mepof.cli.run import explain_plan, local
from mepof.device.protocol import DEVICES
from mepof.errors import MepofError
from mepof.events import Event, StepStarted
from mepof.executor.programs import plan_of
from mepof.g4.source import Source
from mepof.kernel.description import BuildDescription
from mepof.measure.native import (
    CONTROL,
    MAX_SELF_DIFFERENCE_PERCENT,
    Cycles,
    Saving,
    cycles_in,
    least,
    repeats,
    saving,
    timed_cases,
)
from mepof.plan.model import Plan, Result
from mepof.process import run
from mepof.toolchain.protocol import select

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "bench" / "native_cycles" / "pgo.g4"
RESULT = ROOT / "docs" / "benchmarks" / "native"
PLAIN, COPY = "build", "copy"
IMAGES = {
    "own": "a profile of the load itself",
    "other": "a profile of something else, kbench",
}
SECONDS = 600.0


@dataclass(frozen=True)
class Binary:
    """One build of an image; the builds of an image differ in layout."""

    image: str
    number: int
    kernel: Path


@dataclass(frozen=True)
class Load:
    """What else the machine did: its one-minute load before a run, and what the hypervisor took
    from it during the run, in percent of all CPU time."""

    load: float
    stolen_percent: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--relinked", type=int, default=2)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    try:
        plan = with_layouts(
            plan_of(Source(str(PROGRAM), PROGRAM.read_text(encoding="utf-8"))), arguments.relinked
        )
        executor = local(arguments.store, None)
        if arguments.dry_run:
            explain_plan(plan, executor, verbose=False, as_json=False)
            return
        with tempfile.TemporaryDirectory() as scratch:
            finished = executor.run(plan, Path(scratch) / "out", say)
            artifacts = {name: step.path for name, step in finished.run.steps.items()}
            binaries = list(binaries_of(artifacts, arguments.relinked, Path(scratch)))
            runs, loads = timed(binaries, arguments, Path(scratch))
        kernel = BuildDescription.read(artifacts[f"{PLAIN}/build"]).version
    except MepofError as error:
        sys.exit(f"error: {error.message}" + (f"\n  {error.remedy}" if error.remedy else ""))
    found = summary(runs, loads, arguments) | {"kernel": kernel}
    RESULT.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(page(found), encoding="utf-8")
    print(page(found))
    sys.exit(0 if found["repeats"] else 1)


def with_layouts(plan: Plan, relinked: int) -> Plan:
    """A plan that also builds each of its images in further layouts."""
    again = [
        replace(
            plan.step(f"{image}/build"),
            id=f"{image}/relinked{seed}",
            params={**plan.step(f"{image}/build").params, "layout_seed": seed},
        )
        for image in (PLAIN, *IMAGES)
        for seed in range(1, relinked + 1)
    ]
    results = tuple(Result(step.id.replace("/", "-"), "image", step.id) for step in again)
    return replace(plan, steps=(*plan.steps, *again), results=(*plan.results, *results))


def binaries_of(artifacts: Mapping[str, Path], relinked: int, scratch: Path) -> Iterator[Binary]:
    """What is timed, in the order of a run."""
    for image in (PLAIN, *IMAGES):
        yield Binary(image, 0, artifacts[f"{image}/build"] / "kernel")
        for seed in range(1, relinked + 1):
            yield Binary(image, seed, artifacts[f"{image}/relinked{seed}"] / "kernel")
    copy = scratch / COPY
    shutil.copy2(artifacts[f"{PLAIN}/build"] / "kernel", copy)
    yield Binary(COPY, 0, copy)


def timed(
    binaries: Sequence[Binary], arguments: argparse.Namespace, scratch: Path
) -> tuple[dict[tuple[str, int], list[Cycles]], list[Load]]:
    """The cycles of each build in every run, and what else the machine did."""
    found: dict[tuple[str, int], list[Cycles]] = {}
    loads: list[Load] = []
    for number in range(arguments.runs):
        # Each run begins with another build, so that none is always after the same one.
        first = number % len(binaries)
        before, load = cpu_times(), os.getloadavg()[0]
        for binary in (*binaries[first:], *binaries[:first]):
            console = timed_once(binary, arguments, scratch)
            found.setdefault((binary.image, binary.number), []).append(cycles_in(console))
        spent = [b - a for a, b in zip(before, cpu_times(), strict=True)]
        loads.append(Load(round(load, 1), round(100 * spent[7] / sum(spent[:8]), 1)))
        print(f"run {number + 1} of {arguments.runs}: {loads[-1]}", file=sys.stderr, flush=True)
    return found, loads


def timed_once(binary: Binary, arguments: argparse.Namespace, scratch: Path) -> str:
    """What a kernel prints that runs the load and powers off."""
    # With a heap at a random distance, the guest's memory would be as much larger.
    pinned = ["setarch", "--addr-no-randomize", "taskset", "-c", str(arguments.core)]
    words = ["mem=256M", "con=null", "con0=null,fd:1", "uml_dir=.", f"kload={arguments.rounds}"]
    command = [*pinned, str(binary.kernel), *words]
    return run(command, cwd=scratch, timeout=SECONDS, check=False).output


def cpu_times() -> list[int]:
    """Ticks of user, nice, system, idle, iowait, irq, softirq, steal, … of all CPUs (proc(5))."""
    return [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def summary(
    runs: Mapping[tuple[str, int], Sequence[Cycles]],
    loads: Sequence[Load],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """What is kept: cycles by image, build and case, and comparisons."""
    builds = {key: least(of_build) for key, of_build in runs.items()}
    images = {
        image: [cycles for (name, _), cycles in builds.items() if name == image]
        for image in (PLAIN, COPY, *IMAGES)
    }
    first = images[PLAIN][0]
    cases = timed_cases(first)
    # The copy is of one layout: it is compared with that one.
    itself = saving([first], images[COPY], cases)
    return {
        "processor": DEVICES.get("uml").describe("um").cpu,
        "compiler": select("clang").version,
        "runs": arguments.runs,
        "rounds": arguments.rounds,
        "core": arguments.core,
        "loads": [asdict(load) for load in loads],
        "repeats": repeats(itself),
        "same_binary": {
            "mean": asdict(itself),
            "cases": {case: asdict(saving([first], images[COPY], [case])) for case in first},
        },
        "images": {
            image: {
                "mean": compared(images, image, cases),
                "cases": {case: compared(images, image, [case]) for case in first},
            }
            for image in IMAGES
        },
        "layouts": {case: spread(images[PLAIN], case) for case in first},
        "cycles": images,
    }


def compared(
    images: Mapping[str, Sequence[Cycles]], image: str, cases: Sequence[str]
) -> dict[str, Any]:
    found: Saving = saving(images[PLAIN], images[image], cases)
    return {**asdict(found), "verdict": found.verdict}


def spread(builds: Sequence[Cycles], case: str) -> float:
    """How much more the slowest layout takes than the fastest, in percent."""
    cycles = [build[case] for build in builds]
    return 100 * (max(cycles) / min(cycles) - 1)


def page(found: Mapping[str, Any]) -> str:
    """The results as a page."""
    loads = found["loads"]
    return _PAGE.format(
        kernel=found["kernel"],
        compiler=found["compiler"],
        processor=found["processor"],
        runs=found["runs"],
        rounds=found["rounds"],
        builds=len(found["cycles"][PLAIN]),
        load=f"{min(e['load'] for e in loads):.1f} to {max(e['load'] for e in loads):.1f}",
        stolen=f"{median(e['stolen_percent'] for e in loads):.1f}",
        cores=os.cpu_count(),
        limit=MAX_SELF_DIFFERENCE_PERCENT,
        itself=f"{found['same_binary']['mean']['percent']:+.2f}",
        sound="" if found["repeats"] else " **That is too much: there are no verdicts.**",
        verdicts="\n".join(_verdicts(found)),
        rows="\n".join(_rows(found)),
    )


def _verdicts(found: Mapping[str, Any]) -> Iterator[str]:
    for image, title in IMAGES.items():
        cases = {c: row for c, row in found["images"][image]["cases"].items() if c != CONTROL}
        mean = found["images"][image]["mean"]
        text = f"- With {title}: {_interval(mean)} on the geometric mean."
        if found["repeats"]:
            fewer, more = (
                [case for case, row in cases.items() if row["verdict"] == wanted]
                for wanted in ("fewer", "more")
            )
            named = f" ({', '.join(more)})" if more else ""
            text += (
                f" {len(fewer)} of {len(cases)} cases take fewer cycles beyond the spread of"
                f" layouts, {len(more)} more{named}."
            )
        worst = min(cases, key=lambda case: cases[case]["percent"])
        text += f" The worst case is `{worst}`: {cases[worst]['percent']:+.1f} %."
        yield fill(text, 100, subsequent_indent="  ", break_on_hyphens=False)


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    own, other = (found["images"][image]["cases"] for image in IMAGES)
    for case, itself in found["same_binary"]["cases"].items():
        name = f"`{case}`" + (", the control" if case == CONTROL else "")
        cycles = found["cycles"][PLAIN][0][case]
        yield (
            f"| {name} | {cycles:,.0f} | {_interval(own[case])} | {_interval(other[case])} "
            f"| {itself['percent']:+.1f} | {found['layouts'][case]:.1f} |"
        )


def _interval(row: Mapping[str, float]) -> str:
    return f"{row['percent']:+.1f} % [{row['low']:+.1f}, {row['high']:+.1f}]"


def say(event: Event) -> None:
    if isinstance(event, StepStarted):
        print(f"{event.step}: {event.reason}", file=sys.stderr, flush=True)


_PAGE = """# Native cycles of kernel code

Command: `make bench-native` (`bench/native_cycles.py --runs {runs} --rounds {rounds}`).

Linux {kernel} as [User-Mode Linux](../devices/uml.md), built with Clang {compiler}, runs
[the load of kernel code](../suites/kload.md) on a real processor: {processor}. All figures on this
page are *native*: cycles of the time-stamp counter, the shortest of {rounds} rounds in each of
{runs} runs. The kernels take turns, pinned to one core. The machine has {cores} cores; its load was
{load}, and its hypervisor took {stolen} % of its time (median of the runs).

Each kernel is built in {builds} layouts: the linker shuffles the order of the objects' code.
Percentages are of fewer cycles than without a profile, geometric means over layouts, with 95 %
intervals of the spread between them. *Same* is what the same binary takes fewer than itself,
*layouts* how much more the slowest layout without a profile takes than the fastest.

- A copy of the same binary differs by {itself} % on the geometric mean; up to {limit} % is
  accepted.{sound}
{verdicts}

| case | cycles without a profile | profile of the load | profile of kbench | same, % | layouts, % |
| --- | --- | --- | --- | --- | --- |
{rows}

`kload` times itself and is compiled alike in every kernel; `checksum` calls nothing of the kernel.
"""


if __name__ == "__main__":
    main()
