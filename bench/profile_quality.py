"""How good recorded branches are as a profile: block by block against an instrumented kernel.

    bench/profile_quality.py [--periods N,…] [--depths N,…]

An instrumented kernel counts its blocks itself. While it runs the work, its branches are recorded
too, all of them or samples of a branch stack, so both describe the same work on the same code. The
overlap is the sum of min(p, q) over all blocks, p and q being a block's share of all counts. Writes
docs/benchmarks/profile-quality.json and .md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from measure.counters import Executed, increments, overlap, values

from mepof import _engine
from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import load_app
from mepof.device import agent
from mepof.device.observation import Branches
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4.source import Source
from mepof.plan.store import default_store
from mepof.process import run
from mepof.scenario.protocol import SCENARIOS, Part
from mepof.toolchain import clang

ROOT = Path(__file__).parents[1]
SCRATCH = ROOT / "build" / "bench" / "quality"
RESULT = ROOT / "docs" / "benchmarks" / "profile-quality"
ACTIONS, SEED = 24, 1
PROGRAM = ROOT / "examples" / "quickstart.g4"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--periods", default="499,1999,10007,49999,199999")
    parser.add_argument("--depths", default="16,32")
    arguments = parser.parse_args()
    build, guest = _kernel()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    blocks = increments(build / "vmlinux", clang.TOOLCHAIN.select(None).program("llvm-objdump"))
    run(["make", "-s", "-C", ROOT / "native" / "tcg-plugin", f"OUT={SCRATCH}"])
    observed = [Branches()]
    for depth in map(int, arguments.depths.split(",")):
        observed += [Branches(int(p), depth) for p in arguments.periods.split(",")]
    rows = []
    for branches in observed:
        row = _compared(branches, build, guest, blocks)
        rows.append(row)
        print(json.dumps(row), flush=True)
    command = f"bench/profile_quality.py --periods {arguments.periods} --depths {arguments.depths}"
    result = {"command": command, "actions": ACTIONS, "seed": SEED, "rows": rows}
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(_page(result))


def _kernel() -> tuple[Path, Path]:
    """The instrumented kernel and the guest, built or taken from the store."""
    executor = LocalExecutor(default_store(), 2)
    plan = plan_of(Source.read(PROGRAM))
    steps = executor.run(plan, SCRATCH / "out", lambda event: None).run.steps
    build = next(done.path for name, done in steps.items() if name.endswith("/instrument"))
    return build, steps["guest"].path


def _compared(
    branches: Branches, build: Path, guest: Path, blocks: dict[int, list[int]]
) -> dict[str, Any]:
    """Run the work once, and compare the recorded branches with the kernel's own counters."""
    algorithm = ALGORITHMS.get("pgo")
    actions = SCENARIOS.get("rand").pick((Part(load_app("kbench")),), ACTIONS, SEED)
    session = Session(
        arch="x86-64",
        kernel=build / "kernel",
        initramfs=guest / INITRAMFS,
        requests=(
            *algorithm.reset(),
            agent.Record(True),
            *(agent.Exec(action.argv, action.seconds) for action in actions),
            agent.Record(False),
            *algorithm.collect(modules=False),
        ),
        seed=SEED,
        record=branches,
        artifacts={"plugins": SCRATCH},
    )
    outcome = DEVICES.get("qemu").boot(session, SCRATCH / "boot", run, lambda count: None)
    answer = outcome.replies[-1]
    assert isinstance(answer, agent.GetResult) and not answer.errno and outcome.branches
    raw = SCRATCH / "raw"
    raw.write_bytes(answer.data)
    counted = dict(enumerate(values(raw)))
    text = SCRATCH / "unsymbolized"
    given = _engine.Recording(build / "vmlinux", [outcome.branches])
    verdict = json.loads(_engine.convert(given, "unsymbolized", text, allow_poor=True))["verdict"]
    with text.open(encoding="utf-8") as lines:
        executed = Executed(lines, _base(build / "vmlinux"))
    seen = {number: sum(map(executed.count, at)) for number, at in blocks.items()}
    truth = {number: counted[number] for number in blocks}
    return {
        "period": branches.period,
        "depth": None if branches.period is None else branches.depth,
        "samples": verdict["inputs"][0]["samples"]["read"],
        "overlap_percent": round(100 * overlap(truth, seen), 3),
        "blocks_executed": sum(1 for count in truth.values() if count),
        "blocks_seen": sum(1 for number in truth if truth[number] and seen[number]),
        "compared_percent": round(100 * sum(truth.values()) / sum(counted.values()), 2),
    }


def _base(vmlinux: Path) -> int:
    """The origin of addresses in the engine's unsymbolized text: the first loaded byte."""
    with vmlinux.open("rb") as file:
        segments = ELFFile(file).iter_segments("PT_LOAD")
        return min(segment["p_vaddr"] for segment in segments if segment["p_flags"] & 1)


def _page(result: dict[str, Any]) -> str:
    exact, *sampled = result["rows"]
    periods = list(dict.fromkeys(row["period"] for row in sampled))
    depths = list(dict.fromkeys(row["depth"] for row in sampled))
    by_both = {(row["period"], row["depth"]): row for row in sampled}
    lines = [
        f"| {period:,} | {by_both[period, depths[0]]['samples']:,} | "
        + " | ".join(
            f"{by_both[period, depth]['overlap_percent']:.1f} | "
            f"{100 * by_both[period, depth]['blocks_seen'] / exact['blocks_executed']:.0f}"
            for depth in depths
        )
        + " |"
        for period in periods
    ]
    heads = " | ".join(f"overlap at depth {depth}, % | blocks seen, %" for depth in depths)
    return _PAGE.format(
        **{**result, **exact, "rows": "\n".join(lines)},
        heads=heads,
        rule="|".join(["---"] * (2 + 2 * len(depths))),
    )


_PAGE = """# How good recorded branches are as a profile

`{command}` writes this page.

An instrumented kernel (`slim`, Linux 6.12) counts its blocks itself. While it runs {actions}
actions of `rand kbench` (seed {seed}), its branches are recorded too, so both describe the same
work on the same code, without debug information in between. The overlap is the sum of min(p, q)
over all blocks, p and q being a block's share of all counts. Counters to which the compiler adds
once for many iterations of a loop are left out; the compared ones hold
{compared_percent} % of all counts.

Every branch recorded: the overlap is **{overlap_percent} %**; {blocks_seen:,} of the
{blocks_executed:,} blocks that ran were seen.

Branch stacks sampled once every *period* taken branches of the kernel:

| period | samples | {heads} |
|{rule}|
{rows}
"""


if __name__ == "__main__":
    main()
