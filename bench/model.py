"""The emulated PMU against this machine: programs of bench/model/, each built plain, with PGO and
with other layouts, timed natively and modelled, and how well the modelled speed-ups agree.

    bench/model.py [--kernel FILE --guest DIR] [--core NAME] [--rounds N] [--again]
                   [--programs DIR] [--variants NAME,…]

The model runs in QEMU's system emulation, because Debian's qemu-user is built without plugins.
Without ``--kernel`` and ``--guest`` (the artifact of a ``guest`` step) it takes those of
`make demo` from the store. ``--again`` models anew and keeps the native times of the last run;
``--programs`` names where the built programs are kept, and taken from if they are there.
Writes docs/benchmarks/model.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from measure import demo

from mepof.device import agent
from mepof.device.protocol import DEVICES, Guest, Interval, Pmu, Session
from mepof.errors import InputError, WorkError
from mepof.evaluate.core import Core, load_core
from mepof.process import find_tool, run
from mepof.toolchain import clang

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "bench" / "model"
RESULT = ROOT / "docs" / "benchmarks" / "model"
PLAIN = "plain"
# Of which a program's own clock takes the least, so that what others do to it counts little.
NATIVE_REPETITIONS = 20
# Rounds of work in the longer of two intervals beyond those in the shorter (main.c).
MODELLED_ROUNDS = 2

Seconds = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class Variant:
    """How the programs are built once, and what is told of it."""

    name: str
    told: str
    flags: tuple[str, ...] = ()
    trained: bool = False


VARIANTS = (
    Variant(PLAIN, "as they are"),
    Variant("pgo", "with PGO, trained by the same work", trained=True),
    Variant("unplaced", "without placement of blocks", ("-mllvm", "-disable-block-placement")),
    Variant(
        "aligned",
        "with blocks that nothing falls through to aligned to 32 bytes",
        ("-mllvm", "-align-all-nofallthru-blocks=5"),
    ),
    Variant(
        "shuffled",
        "with functions in another order",
        ("-ffunction-sections", "-Wl,--shuffle-sections=.text.*=7"),
    ),
)


@dataclass(frozen=True)
class Point:
    """A speed-up over the plain build, in percent, both ways."""

    program: str
    variant: str
    native: float
    native_low: float
    native_high: float
    modelled: float

    @property
    def error(self) -> float:
        """Percentage points by which the model is wrong."""
        return abs(self.modelled - self.native)


def programs() -> tuple[str, ...]:
    """Every program, sorted."""
    return tuple(sorted(p.stem for p in SOURCES.glob("*.c") if p.stem != "main"))


def build(program: str, variant: Variant, directory: Path) -> Path:
    """One program, built in one way."""
    tools = clang.select("clang")
    linker = find_tool(tools.tool("ld.lld"))
    command = [tools.tool("clang"), "-std=c17", "-O2", "-static", f"--ld-path={linker}"]
    files = [str(SOURCES / "main.c"), str(SOURCES / f"{program}.c")]
    made = directory / f"{program}.{variant.name}"
    if made.exists():
        return made
    flags = [*variant.flags]
    if variant.trained:
        trainee, raw, profile = (made.with_suffix(s) for s in (".train", ".profraw", ".profdata"))
        run([*command, "-fprofile-generate", "-o", trainee, *files])
        run([trainee, "time", "2"], env={"LLVM_PROFILE_FILE": str(raw)})
        run([tools.tool("llvm-profdata"), "merge", "-o", profile, raw])
        flags += [f"-fprofile-use={profile}"]
    run([*command, "-s", *flags, "-o", made, *files])
    return made


def timed(built: Mapping[tuple[str, str], Path], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Nanoseconds of CPU time of a round of work, by program and variant; one a round, the
    variants of a program alternating, on one CPU."""
    taken: dict[str, dict[str, list[float]]] = {}
    pinned = [find_tool("taskset"), "-c", str(max(os.sched_getaffinity(0)))]
    for number in range(rounds):
        for (program, variant), path in built.items():
            output = run([*pinned, path, "time", str(NATIVE_REPETITIONS)]).output
            nanoseconds = float(output.split()[0])
            taken.setdefault(program, {}).setdefault(variant, []).append(nanoseconds)
        print(f"round {number + 1} of {rounds} timed", file=sys.stderr, flush=True)
    return taken


def modelled(
    built: Mapping[tuple[str, str], Path], session: Session, scratch: Path
) -> dict[str, dict[str, Interval]]:
    """What two rounds of work are on the core, by program and variant: a boot a variant."""
    found: dict[str, dict[str, Interval]] = {}
    for variant in dict.fromkeys(kind for _, kind in built):
        names = [program for program, kind in built if kind == variant]
        requests: list[agent.Request] = []
        for program in names:
            data = built[program, variant].read_bytes()
            requests.append(agent.Put("/tmp/program", 0o755, data))
            requests.append(agent.Exec(("/tmp/program", "model"), 600))
        booted = Session(
            arch=session.arch,
            kernel=session.kernel,
            guest=session.guest,
            requests=tuple(requests),
            seed=session.seed,
            count=True,
            pmu=session.pmu,
        )
        outcome = DEVICES.get("qemu").boot(booted, scratch / "boot", run, lambda count: None)
        for request, reply in zip(requests, outcome.replies, strict=True):
            if isinstance(request, agent.Exec):
                agent.expect_success(request, reply)
        if len(outcome.intervals) != 2 * len(names):
            raise WorkError(f"{len(names)} programs gave {len(outcome.intervals)} intervals")
        for program, short, long in zip(
            names, outcome.intervals[::2], outcome.intervals[1::2], strict=True
        ):
            found.setdefault(program, {})[variant] = difference(long, short)
        print(f"{variant} modelled", file=sys.stderr, flush=True)
    return found


def difference(long: Interval, short: Interval) -> Interval:
    """What the longer has more, which a cold core has no part in."""
    found: dict[str, Any] = {}
    for field in fields(Interval):
        one, other = getattr(long, field.name), getattr(short, field.name)
        found[field.name] = (
            {name: max(0, one[name] - other[name]) for name in one}
            if isinstance(one, dict)
            else one - other
        )
    return Interval(**found)


def cycles(core: Core, interval: Interval) -> float:
    """Modelled cycles of the program."""
    assert interval.user_events is not None
    priced = core.cycles(
        interval.user_instructions, interval.user_taken_branches, interval.user_events
    )
    return sum(priced.values())


def points(core: Core, native: Seconds, model: dict[str, dict[str, Interval]]) -> list[Point]:
    """Every variant of every program against its plain build."""
    found = []
    for program, variants in native.items():
        for variant, seconds in variants.items():
            if variant == PLAIN or variant not in model[program]:
                continue
            ratios = sorted(
                100 * (plain / one - 1) for plain, one in zip(variants[PLAIN], seconds, strict=True)
            )
            quarter = len(ratios) // 4
            predicted = cycles(core, model[program][PLAIN]) / cycles(core, model[program][variant])
            found.append(
                Point(
                    program,
                    variant,
                    statistics.median(ratios),
                    ratios[quarter],
                    ratios[-1 - quarter],
                    100 * (predicted - 1),
                )
            )
    return found


def agreement(found: Sequence[Point]) -> dict[str, float]:
    """Spearman's rank correlation, and the median error in percentage points."""
    from scipy.stats import spearmanr

    correlation = spearmanr([p.native for p in found], [p.modelled for p in found]).statistic
    return {
        "points": len(found),
        "rank_correlation": float(correlation),
        "median_error": statistics.median(p.error for p in found),
    }


def compared(
    core: Core,
    name: str,
    native: Seconds,
    model: dict[str, dict[str, Interval]],
    machine: Mapping[str, Any],
    rounds: int,
) -> dict[str, Any]:
    """Everything that is written down."""
    found = points(core, native, model)
    kinds = {"all": found} | {
        v.name: some for v in VARIANTS if (some := [p for p in found if p.variant == v.name])
    }
    variants = [kind for kind in kinds if kind != "all"]
    return {
        "command": f"bench/model.py --core {name} --rounds {rounds} "
        f"--variants {','.join(variants)}",
        "core": name,
        "machine": dict(machine),
        "rounds": rounds,
        "programs": list(programs()),
        "variants": [PLAIN, *variants],
        "agreement": {kind: agreement(some) for kind, some in kinds.items()},
        "points": [{**vars(p), "error": p.error} for p in found],
        "native": native,
        "modelled": {
            program: {variant: vars(interval) for variant, interval in intervals.items()}
            for program, intervals in model.items()
        },
    }


def page(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = "\n".join(
        f"| {p['program']} | {p['variant']} | {p['native']:+.1f} | {p['native_low']:+.1f} to "
        f"{p['native_high']:+.1f} | {p['modelled']:+.1f} | {p['error']:.1f} |"
        for p in result["points"]
    )
    by_variant = "\n".join(
        f"| {name} | {a['points']:.0f} | {a['rank_correlation']:.2f} | {a['median_error']:.1f} |"
        for name, a in result["agreement"].items()
    )
    machine = result["machine"]
    builds = "\n".join(f"- {v.name}: {v.told}" for v in VARIANTS if v.name in result["variants"])
    return f"""# The model against reality

Command: `make bench-model` (`{result["command"]}`).

{len(result["programs"])} programs of bench/model/, compiled by clang -O2:
{builds}

The speed-up over the plain build, in percent: *native*, CPU time on {machine["cpu"]}, the median
over {result["rounds"]} rounds in which the builds alternate, each the least of {NATIVE_REPETITIONS}
repetitions, with the middle half of the rounds; and *modelled*, cycles of the core
`{result["core"]}` ([the model](../pmu.md)).
While the programs were timed, the machine's load was {machine["load"]} on {machine["cores"]} cores.

| | points | rank correlation | median error, percentage points |
| --- | --- | --- | --- |
{by_variant}

The targets are a rank correlation of 0.9 at least and a median error below 3 points.

| program | build | native | middle half | modelled | error |
| --- | --- | --- | --- | --- | --- |
{rows}
"""


def _session(arguments: argparse.Namespace, core: Core, scratch: Path) -> Session:
    kernel, guest = demo.images(arguments.kernel, arguments.guest, scratch)
    run(["make", "-s", "-C", ROOT / "native" / "pmu", f"OUT={scratch}"])
    pmu = Pmu(scratch / "pmu.so", core.arguments())
    return Session(
        arch=core.arch, kernel=kernel, guest=Guest.of(guest), requests=(), seed=1, pmu=pmu
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--guest", type=Path)
    parser.add_argument("--core", default="zen4")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--variants", default=",".join(v.name for v in VARIANTS[1:]))
    arguments = parser.parse_args()
    core = load_core(arguments.core)
    data = RESULT.with_suffix(".json")
    wanted = {PLAIN, *arguments.variants.split(",")}
    chosen = [v for v in VARIANTS if v.name in wanted]
    if len(chosen) < 2 or len(chosen) < len(wanted):
        known = ", ".join(v.name for v in VARIANTS[1:])
        raise InputError(f"unknown variants: {arguments.variants}", f"known: {known}")
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        session = _session(arguments, core, scratch)
        kept = arguments.programs or scratch
        kept.mkdir(parents=True, exist_ok=True)
        built = {
            (program, variant.name): build(program, variant, kept)
            for program in programs()
            for variant in chosen
        }
        if arguments.again:
            last = json.loads(data.read_text(encoding="utf-8"))
            native, load, rounds = last["native"], last["machine"]["load"], last["rounds"]
        else:
            native, rounds = timed(built, arguments.rounds), arguments.rounds
            load = f"{os.getloadavg()[1]:.1f}"
            # For --again, should modelling fail.
            kept_times = {"native": native, "machine": {"load": load}, "rounds": rounds}
            data.write_text(json.dumps(kept_times) + "\n", encoding="utf-8")
        model = modelled(built, session, scratch)
    machine = {"cpu": demo.processor(), "cores": os.cpu_count(), "load": load}
    result = compared(core, arguments.core, native, model, machine, rounds)
    data.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    RESULT.with_suffix(".md").write_text(page(result), encoding="utf-8")
    print(page(result))


if __name__ == "__main__":
    main()
