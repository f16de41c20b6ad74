"""The cost of counting and modelling: boots of the same image with the same work, plain TCG against
the counting plugin and the emulated PMU, alternating, as ratios of whole-process CPU time.

    bench/counting_cost.py [--kernel FILE --guest DIR] [--core NAME] [--rounds N]
                           [--repetitions N]

Without ``--kernel`` and ``--guest`` (the artifact of a ``guest`` step) it takes those of
`make demo` from the store. Writes docs/benchmarks/counting-cost.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from measure import demo

from mepof.device import agent
from mepof.device.observation import Measure
from mepof.device.protocol import DEVICES, Session
from mepof.process import run
from mepof.suite.cases import cases_of

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "counting-cost.md"
PLAIN = "plain TCG"


def child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cost(session: Session, directory: Path) -> float:
    """CPU seconds of one boot."""
    before = child_seconds()
    DEVICES.get("qemu").boot(session, directory, run, lambda count: None)
    return child_seconds() - before


def contestants(session: Session, core: str, scratch: Path) -> dict[str, Session]:
    """The same work, observed in different ways."""
    run(["make", "-s", "-C", ROOT / "native" / "tcg-plugin", f"OUT={scratch}"])
    counting = replace(session, measure=Measure(), artifacts={"plugins": scratch})
    model = demo.modelled(session, core, scratch)
    assert model.measure is not None
    locating = replace(model, measure=replace(model.measure, locations=True))
    return {
        PLAIN: session,
        "counting only": counting,
        f"full model, {core}": model,
        f"full model, {core}, with locations": locating,
    }


def row(name: str, seconds: Sequence[float], plain: Sequence[float]) -> str:
    """A line of the table; ratios are to plain TCG of the same round."""
    ratios = [one / other for one, other in zip(seconds, plain, strict=True)]
    return (
        f"| {name} | {statistics.median(seconds):.2f} | {statistics.median(ratios):.2f} "
        f"| {min(ratios):.2f} to {max(ratios):.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--guest", type=Path)
    parser.add_argument("--core", default="zen4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=4)
    arguments = parser.parse_args()
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        idle = demo.idle(arguments.kernel, arguments.guest, scratch)
        work = tuple(agent.Exec(case.argv, 120) for case in cases_of(()))
        worked = replace(idle, requests=work * arguments.repetitions)
        watched = contestants(worked, arguments.core, scratch)
        for number in range(arguments.rounds):
            boot = cost(idle, scratch / "boot")
            for name, session in watched.items():
                seconds = cost(session, scratch / "boot") - boot
                taken.setdefault(name, []).append(seconds)
                print(f"round {number}: {name}: {seconds:.2f} s", file=sys.stderr, flush=True)
    rows = "\n".join(row(name, seconds, taken[PLAIN]) for name, seconds in taken.items())
    command = (
        f"bench/counting_cost.py --rounds {arguments.rounds} --repetitions {arguments.repetitions}"
    )
    text = f"""# The cost of counting and of the model

Command: `make bench` (`{command}`).

The eight cases of the suite `mepof`, {arguments.repetitions} times over, in one boot of the
quickstart's optimised kernel; CPU seconds of the whole QEMU process less those of a boot without
work. Plain TCG (`-icount shift=0`), the counting plugin, and [the emulated PMU](../pmu.md)
alternate for {arguments.rounds} rounds. A ratio is to plain TCG of the same round; the target
of the full model is at most 12. The machine's load was {os.getloadavg()[2]:.1f} on
{os.cpu_count()} cores.

| | CPU seconds, median | to plain TCG, median | range |
|---|---|---|---|
{rows}
"""
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
