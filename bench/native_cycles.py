"""Native cycles of kernel code with and without a profile, on User-Mode Linux.

    bench/native_cycles.py [--dry-run] [--store DIR] [--runs N] [--rounds N] [--relinked N]
        [--core N] [PART…]

Parts: `profiles`, which runs if none is named, builds the kernels of bench/native_cycles/pgo.g4 and
relinks each in further layouts, then times the load of kernel code (docs/suites/kload.md) in all of
them in turn, pinned to one core, with a copy of the first kernel as its A/A control; `sampled` and
`options` do so with those of sampled.g4 and options.g4; `emulated` counts and models the load on
x86-64, by emulated.g4. Writes docs/benchmarks/native.json and .md after each part; an interrupted
one continues where it ended. Exits with 1, without verdicts, where the copy differs from its
original.
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
from typing import Any

from measure.left import left_percent
from measure.native_page import EMULATED, OPTIONS, OTHER, OWN, PLAIN, SAMPLED, page
from measure.program import planned, ran

from mepof.cli.run import explain_plan, local
from mepof.device.protocol import DEVICES
from mepof.errors import MepofError
from mepof.events import Event, StepStarted
from mepof.executor.programs import plan_of
from mepof.g4.source import Source
from mepof.kernel.description import BuildDescription
from mepof.measure.native import (
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
from mepof.toolchain.named import select

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "bench" / "native_cycles"
RESULT = ROOT / "docs" / "benchmarks" / "native"
OUT = ROOT / "out" / "native"
COPY = "copy"
#: The timed parts: their programs, and the images beside the plain one.
TIMED = {
    "profiles": ("pgo.g4", (OWN, OTHER)),
    "sampled": ("sampled.g4", (OWN, SAMPLED)),
    "options": (
        "options.g4",
        tuple(name for pair in OPTIONS.values() for name in pair if name not in (None, PLAIN)),
    ),
}
EMULATION = "emulated"
PARTS = (*TIMED, EMULATION)
LTO = {"ThinLTO", "FullLTO"}
SECONDS = 600.0


#: The cycles of every run, by image and number of its build.
Runs = dict[tuple[str, int], list[Cycles]]


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
    parser.add_argument("part", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.part) - set(PARTS):
        parser.error(f"there is no part {min(unknown)}: choose of {', '.join(PARTS)}")
    record = RESULT.with_suffix(".json")
    found = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    for part in arguments.part or PARTS[:1]:
        made = part_of(part, arguments)
        if made is None:
            continue
        found[part] = made
        record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        RESULT.with_suffix(".md").write_text(page(found), encoding="utf-8")
        if not made.get("repeats", True):
            sys.exit(1)


def part_of(part: str, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """What a part found; None if it was only shown what it would do."""
    if part == EMULATION:
        program = PROGRAMS / "emulated.g4"
        if arguments.dry_run:
            planned(program, arguments.store)
            return None
        return emulated(ran(program, OUT / part, arguments.store))
    name, images = TIMED[part]
    program = PROGRAMS / name
    try:
        text = program.read_text(encoding="utf-8")
        plan = with_layouts(plan_of(Source(str(program), text)), images, arguments.relinked)
        executor = local(arguments.store, None)
        if arguments.dry_run:
            explain_plan(plan, executor, verbose=False, as_json=False)
            return None
        with tempfile.TemporaryDirectory() as scratch:
            finished = executor.run(plan, Path(scratch) / "out", say)
            artifacts = {name: step.path for name, step in finished.run.steps.items()}
            binaries = list(binaries_of(artifacts, images, Path(scratch)))
            OUT.mkdir(parents=True, exist_ok=True)
            record = OUT / f"{part}.json"
            runs, loads = timed(binaries, arguments, Path(scratch), record)
        kernel = BuildDescription.read(artifacts[f"{PLAIN}/build"]).version
    except MepofError as error:
        sys.exit(f"error: {error.message}" + (f"\n  {error.remedy}" if error.remedy else ""))
    record.unlink()
    return summary(runs, loads, images, arguments) | {"kernel": kernel}


def emulated(report: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of what was counted and modelled."""
    return {
        "kernel": report["provenance"]["kernel"],
        "compiler": report["provenance"]["tools"]["clang"],
        "core": report["core"],
        "left_percent": left_percent(report, EMULATED),
    }


def with_layouts(plan: Plan, images: Sequence[str], relinked: int) -> Plan:
    """A plan that also builds each of its images in further layouts.

    With link-time optimisation a kernel is linked from one object, which has one layout.
    """
    again = []
    for image in (PLAIN, *images):
        step = plan.step(f"{image}/build")
        options = step.params["options"]
        if isinstance(options, list) and LTO.intersection(map(str, options)):
            continue
        for seed in range(1, relinked + 1):
            params = {**step.params, "layout_seed": seed}
            again.append(replace(step, id=f"{image}/relinked{seed}", params=params))
    results = tuple(Result(step.id.replace("/", "-"), "image", step.id) for step in again)
    return replace(plan, steps=(*plan.steps, *again), results=(*plan.results, *results))


def binaries_of(
    artifacts: Mapping[str, Path], images: Sequence[str], scratch: Path
) -> Iterator[Binary]:
    """What is timed, in the order of a run."""
    for image in (PLAIN, *images):
        yield Binary(image, 0, artifacts[f"{image}/build"] / "kernel")
        seed = 1
        while (again := f"{image}/relinked{seed}") in artifacts:
            yield Binary(image, seed, artifacts[again] / "kernel")
            seed += 1
    copy = scratch / COPY
    shutil.copy2(artifacts[f"{PLAIN}/build"] / "kernel", copy)
    yield Binary(COPY, 0, copy)


def timed(
    binaries: Sequence[Binary], arguments: argparse.Namespace, scratch: Path, record: Path
) -> tuple[Runs, list[Load]]:
    """The cycles of each build in every run, and what else the machine did.

    Args:
        record: of the runs so far, from which an interrupted benchmark goes on.
    """
    kernels = [str(binary.kernel) for binary in binaries if binary.image != COPY]
    about = {"kernels": kernels, "rounds": arguments.rounds, "core": arguments.core}
    kept = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    if kept.get("about") != about:
        kept = {"about": about, "runs": [], "loads": []}
    for number in range(len(kept["runs"]), arguments.runs):
        # Each run begins with another build, so that none is always after the same one.
        first = number % len(binaries)
        before, load = cpu_times(), os.getloadavg()[0]
        kept["runs"].append(
            [
                (binary.image, binary.number, cycles_in(timed_once(binary, arguments, scratch)))
                for binary in (*binaries[first:], *binaries[:first])
            ]
        )
        spent = [b - a for a, b in zip(before, cpu_times(), strict=True)]
        kept["loads"].append([round(load, 1), round(100 * spent[7] / sum(spent[:8]), 1)])
        record.write_text(json.dumps(kept), encoding="utf-8")
        print(f"run {number + 1} of {arguments.runs}: load {load:.1f}", file=sys.stderr, flush=True)
    found: Runs = {}
    for image, number, cycles in (each for one in kept["runs"] for each in one):
        found.setdefault((image, number), []).append(cycles)
    return found, [Load(*each) for each in kept["loads"]]


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
    runs: Runs,
    loads: Sequence[Load],
    names: Sequence[str],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """What is kept: cycles by image, build and case, and comparisons."""
    builds = {key: least(of_build) for key, of_build in runs.items()}
    images = {
        image: [cycles for (name, _), cycles in builds.items() if name == image]
        for image in (PLAIN, COPY, *names)
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
                "mean": compared(images[PLAIN], images[image], cases),
                "cases": {case: compared(images[PLAIN], images[image], [case]) for case in first},
            }
            for image in names
        },
        # With a profile, beside the same option without one.
        "beside": {
            image: compared(images[alone], images[image], cases)
            for alone, image in OPTIONS.values()
            if alone in images and image in images
        },
        "layouts": {case: spread(images[PLAIN], case) for case in first},
        "cycles": images,
    }


def compared(
    baseline: Sequence[Cycles], image: Sequence[Cycles], cases: Sequence[str]
) -> dict[str, Any]:
    found: Saving = saving(baseline, image, cases)
    return {**asdict(found), "verdict": found.verdict}


def spread(builds: Sequence[Cycles], case: str) -> float:
    """How much more the slowest layout takes than the fastest, in percent."""
    cycles = [build[case] for build in builds]
    return 100 * (max(cycles) / min(cycles) - 1)


def say(event: Event) -> None:
    if isinstance(event, StepStarted):
        print(f"{event.step}: {event.reason}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
