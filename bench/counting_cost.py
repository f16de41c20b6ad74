"""What counting costs: boots of the same image with the same work, plain TCG against the
counting plugin, alternating, as a ratio of whole-process CPU time.

Needs the images of `make demo`. Writes docs/benchmarks/counting-cost.md.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from mepof.device import agent
from mepof.device.protocol import DEVICES, Guest, Session
from mepof.errors import InputError
from mepof.evaluate.suite import cases_of
from mepof.executor.local import LocalExecutor, default_store, plan_of
from mepof.g4 import Source
from mepof.process import run

ROUNDS = 7
PROGRAM = Path("examples/quickstart.g4")
RESULT = Path("docs/benchmarks/counting-cost.md")


def child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cost(session: Session, directory: Path) -> float:
    """CPU seconds of one boot."""
    before = child_seconds()
    DEVICES.get("qemu").boot(session, directory, run, lambda count: None)
    return child_seconds() - before


def main() -> None:
    executor = LocalExecutor(default_store(), os.cpu_count() or 1)
    plan = plan_of(Source.read(PROGRAM))
    if any(e.state != "cached" for e in executor.explain(plan) if e.step in ("guest", "opt/build")):
        raise InputError("the images of the demo are not in the store", "run `make demo` first")
    with tempfile.TemporaryDirectory() as scratch:
        steps = executor.run(plan, Path(scratch) / "run", lambda event: None).run.steps
        work = tuple(agent.Exec(case.argv, 120) for case in cases_of(()))
        booted = Session(
            arch="x86-64",
            kernel=steps["opt/build"].path / "kernel",
            guest=Guest.of(steps["guest"].path),
            requests=(),
            seed=1,
        )
        worked = replace(booted, requests=work * 4)
        ratios, plains = [], []
        for number in range(ROUNDS):
            boot = cost(booted, Path(scratch) / "boot")
            plain = cost(worked, Path(scratch) / "plain") - boot
            counted = cost(replace(worked, count=True), Path(scratch) / "counted") - boot
            ratios.append(counted / plain)
            plains.append(plain)
            print(f"round {number}: plain {plain:.2f} s, counted {counted:.2f} s", file=sys.stderr)
    text = f"""# The cost of counting

Command: `make bench` (`bench/counting_cost.py`).

The eight cases of the suite `mepof`, four times over, in one boot of the quickstart's
optimised kernel; CPU seconds of the whole QEMU process less those of a boot without work;
plain TCG (`-icount shift=0`) and the counting plugin alternate, {ROUNDS} rounds.

| | median | minimum | maximum |
|---|---|---|---|
| plain TCG, CPU seconds | {statistics.median(plains):.2f} | {min(plains):.2f} | {max(plains):.2f} |
| counting / plain | {statistics.median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |
"""
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
