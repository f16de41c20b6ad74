"""The cost of recording branches: boots of one kernel with the same work, plain TCG against the
counting plugin, the recorder (every branch, and samples), and other plugins, alternating.

    bench/recorder_cost.py [--kernel FILE --guest DIR] [--peer NAME=PLUGIN[,ARGUMENT…]]…
                           [--rounds N]

Without ``--kernel`` and ``--guest`` (the artifact of a ``guest`` step) it takes those of
`make demo` from the store. QEMU's own plugins are not in its packages: build them from
contrib/plugins of QEMU's source. Writes docs/benchmarks/recorder-cost.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from measure import demo

from mepof.device import agent
from mepof.device.observation import Branches, Measure
from mepof.device.protocol import INITRAMFS, Session, branch_source
from mepof.device.tcg_plugins import COUNTER, RECORDER
from mepof.errors import InputError
from mepof.process import Completed, run
from mepof.suite.cases import cases_of

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "recorder-cost"
PERIOD, DEPTH = 10007, 32
REPETITIONS = 2
PLAIN = "plain TCG"


@dataclass(frozen=True)
class Contestant:
    """What runs with the guest.

    Attributes:
        plugin: one that is none of ours; it works from power-on, so its boot costs too.
    """

    name: str
    measure: Measure | None = None
    record: Branches | None = None
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    plugin: str | None = None

    def session(self, session: Session) -> Session:
        return replace(session, measure=self.measure, record=self.record, artifacts=self.artifacts)


def ours(scratch: Path) -> tuple[Contestant, ...]:
    """Plain TCG, and the plugins as they are here."""
    run(["make", "-s", "-C", ROOT / "native" / "tcg-plugin", f"OUT={scratch}"])
    made = {"plugins": scratch}
    sampled = Branches(PERIOD, DEPTH)
    every = f"{RECORDER}, every {PERIOD:,} branches, depth {DEPTH}"
    return (
        Contestant(PLAIN),
        Contestant(COUNTER, measure=Measure(), artifacts=made),
        Contestant(f"{RECORDER}, exact", record=Branches(), artifacts=made),
        Contestant(every, record=sampled, artifacts=made),
    )


@dataclass(frozen=True)
class Cost:
    """Seconds of the whole QEMU process."""

    wall: float
    user: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.user - other.user)


def cost(session: Session, contestant: Contestant, directory: Path) -> Cost:
    """What one boot takes."""
    runner: Callable[..., Completed] = run
    if contestant.plugin is not None:
        runner = partial(_run_with, contestant.plugin)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    began = time.perf_counter()
    branch_source("qemu").boot(contestant.session(session), directory, runner, lambda count: None)
    wall = time.perf_counter() - began
    return Cost(wall, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def _run_with(plugin: str, argv: Sequence[str], **how: Any) -> Completed:
    return run([*argv, "-plugin", plugin], **how)


def booted(arguments: argparse.Namespace, scratch: Path) -> Session:
    """A boot without work."""
    kernel, guest = demo.images(arguments.kernel, arguments.guest, scratch)
    return Session(arch="x86-64", kernel=kernel, initramfs=guest / INITRAMFS, requests=(), seed=1)


def peer(text: str) -> Contestant:
    """The contestant of ``NAME=PLUGIN[,ARGUMENT…]``."""
    name, _, plugin = text.partition("=")
    path = Path(plugin.partition(",")[0])
    if not path.is_file():
        raise InputError(f"there is no plugin {path}", "give --peer NAME=PLUGIN[,ARGUMENT…]")
    return Contestant(name, plugin=plugin)


def rounds(
    session: Session, contestants: Sequence[Contestant], count: int, scratch: Path
) -> dict[str, list[Cost]]:
    """What the work costs beyond the boot, for each contestant and round."""
    work = [agent.Exec(case.argv, 600) for case in cases_of(())] * REPETITIONS
    worked = replace(session, requests=(agent.Record(True), *work, agent.Record(False)))
    taken: dict[str, list[Cost]] = {contestant.name: [] for contestant in contestants}
    for number in range(count):
        unwatched = cost(session, contestants[0], scratch / "boot")
        for contestant in contestants:
            boot = unwatched
            if contestant.plugin is not None:
                boot = cost(session, contestant, scratch / "boot")
            spent = cost(worked, contestant, scratch / "boot") - boot
            taken[contestant.name].append(spent)
            print(f"round {number}: {contestant.name}: {spent}", file=sys.stderr, flush=True)
    return taken


def summary(taken: dict[str, list[Cost]]) -> list[dict[str, Any]]:
    """A row for each contestant; ratios are to plain TCG of the same round."""
    rows = []
    for name, costs in taken.items():
        row: dict[str, Any] = {"name": name, "runs": [vars(one) for one in costs]}
        for kind in ("wall", "user"):
            seconds = [getattr(one, kind) for one in costs]
            plain = [getattr(one, kind) for one in taken[PLAIN]]
            ratios = [one / other for one, other in zip(seconds, plain, strict=True)]
            row[f"{kind}_seconds"] = statistics.median(seconds)
            row[f"{kind}_ratio"] = {
                "median": statistics.median(ratios),
                "range": [min(ratios), max(ratios)],
            }
        rows.append(row)
    return rows


def page(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        f"| {row['name']} | {row['wall_seconds']:.2f} | {_ratio(row['wall_ratio'])} "
        f"| {row['user_seconds']:.2f} | {_ratio(row['user_ratio'])} |"
        for row in result["rows"]
    ]
    table = "\n".join(lines)
    return f"""# The cost of recording

`{result["command"]}`, a part of `make bench`, writes this page.

The eight cases of the suite `mepof`, {REPETITIONS} times over, in one boot: kernel-heavy work.
The table has seconds of the whole QEMU process less those of a boot without work: medians of
{result["rounds"]} rounds in which all of these alternate. A ratio is to plain TCG
(`-icount shift=0`) of the same round, its median and range. On a shared machine, which the spread
of the wall time reveals, user CPU time is more reliable, and a wall ratio below 1 means nothing.
{result["machine"]["cores"]} cores, {result["machine"]["qemu"]}.

| | wall, s | to plain | user, s | to plain |
| --- | --- | --- | --- | --- |
{table}

`count.so` and `record.so` observe what is between their marks. The other plugins observe everything
from power-on, and a boot with each is subtracted from its time as well. They are QEMU's own, from
contrib/plugins of its source: hotblocks counts executions of translated blocks; howvec counts
instructions by class; cflow counts where blocks continue when it is not at the next instruction,
with exceptions, interrupts and the iterations of REP string instructions among the branches. None
gives fall-through ranges.
"""


def _ratio(ratio: dict[str, Any]) -> str:
    low, high = ratio["range"]
    return f"{ratio['median']:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--guest", type=Path)
    parser.add_argument("--peer", type=peer, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        session = booted(arguments, Path(scratch))
        contestants = (*ours(Path(scratch)), *arguments.peer)
        taken = rounds(session, contestants, arguments.rounds, Path(scratch))
    given = " --kernel … --guest …" if arguments.kernel else ""
    given += "".join(f" --peer {one.name}=…" for one in arguments.peer)
    device = branch_source("qemu").identity("x86-64")
    result = {
        "command": f"bench/recorder_cost.py --rounds {arguments.rounds}{given}",
        "machine": {"cores": os.cpu_count(), "qemu": device["qemu"]},
        "rounds": arguments.rounds,
        "rows": summary(taken),
    }
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(page(result), encoding="utf-8")
    print(page(result))


if __name__ == "__main__":
    main()
