"""The model of a core against this machine, one effect at a time: loops of a few instructions, in
cycles of both.

    bench/core_loops.py [--kernel FILE --guest DIR] [--core NAME] [--runs N]

Each loop of bench/core_loops/ tests one limit: what is decoded or fetched in a cycle, or the
latency of a call, a misprediction or store forwarding. The machine's cycles come from timing
against a chain of multiplications, which takes three cycles each; the minimum of many turns counts,
because the load of a shared machine varies. Without ``--kernel`` and ``--guest`` (the artifact of a
``guest`` step) it takes those of `make demo` from the store. Writes docs/benchmarks/core-loops.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from measure import demo

from mepof.device import agent
from mepof.device.protocol import DEVICES, Session
from mepof.pmu.events import cycles_of
from mepof.process import find_tool, run

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "bench" / "core_loops" / "loops.c"
ABI = ROOT / "native" / "abi"
RESULT = ROOT / "docs" / "benchmarks" / "core-loops.md"


@dataclass(frozen=True)
class Loop:
    """Cycles of each of a loop's parts."""

    title: str
    native: float
    modelled: float


def build(directory: Path) -> Path:
    """The program with all loops."""
    made = directory / "loops"
    marks = (f"-I{ABI}", f"-I{ABI / 'x86_64'}")
    run([find_tool("gcc"), "-std=gnu17", "-O2", "-static", *marks, "-o", made, SOURCE])
    return made


def timed(program: Path, runs: int) -> dict[str, tuple[int, float]]:
    """Each loop's parts and the minimal cycles of one, by title, over runs on each processor in
    turn."""
    found: dict[str, tuple[int, float]] = {}
    processors = sorted(os.sched_getaffinity(0))
    for number in range(runs):
        pinned = [find_tool("taskset"), "-c", str(processors[number % len(processors)])]
        for line in run([*pinned, program, "time"]).output.splitlines():
            title, parts, cycles = line.split("\t")
            one = (int(parts), float(cycles))
            found[title] = min(found.get(title, one), one)
    return found


def modelled(program: Path, session: Session, scratch: Path) -> list[float]:
    """Cycles of each loop on the core: its second interval less its first."""
    work = agent.Exec(("/tmp/loops", "model"), 600)
    put = agent.Put("/tmp/loops", 0o755, program.read_bytes())
    booted = replace(session, requests=(put, work))
    outcome = DEVICES.get("qemu").boot(booted, scratch / "boot", run, lambda count: None)
    agent.expect_success(work, outcome.replies[1])
    taken = [sum(cycles_of(i.user_events or {}).values()) for i in outcome.intervals]
    return [long - short for short, long in zip(taken[::2], taken[1::2], strict=True)]


def page(loops: Sequence[Loop], core: str, runs: int) -> str:
    """The comparison as Markdown."""
    rows = "\n".join(
        f"| {loop.title} | {loop.native:.2f} | {loop.modelled:.2f} "
        f"| {loop.modelled / loop.native:.2f} |"
        for loop in loops
    )
    return f"""# A core in small loops

Command: `make bench` (`bench/core_loops.py --core {core} --runs {runs}`).

[Loops](../../bench/core_loops/loops.c) of a few instructions, each for one effect in a core. The
table has the cycles of each part on hardware ({demo.processor()}; the minimum of {runs} runs of 300
turns, timed in units of a multiplication, which takes three) and on the core `{core}` of
[the model](../pmu.md), warm. Each loop also has a branch of its own.

| loop | hardware | modelled | ratio |
| --- | --- | --- | --- |
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--guest", type=Path)
    parser.add_argument("--core", default="zen4")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        idle = demo.idle(arguments.kernel, arguments.guest, scratch)
        session = demo.modelled(idle, arguments.core, scratch)
        program = build(scratch)
        native = timed(program, arguments.runs)
        model = modelled(program, session, scratch)
    loops = [
        Loop(title, least, cycles / parts)
        for (title, (parts, least)), cycles in zip(native.items(), model, strict=True)
    ]
    RESULT.write_text(page(loops, arguments.core, arguments.runs), encoding="utf-8")
    print(RESULT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
