"""The emulated PMU against this machine: programs, each built plain, with PGO and with other
layouts, timed natively and modelled, and how well the modelled speed-ups agree.

    bench/model.py [--sources DIR --out FILE] [--kernel FILE --guest DIR] [--core NAME] [--rounds N]
                   [--only-time] [--again] [--page] [--programs DIR] [--only NAME,…]
                   [--variants NAME,…]

The programs of bench/model/ are the training set: the model was changed after looking at them.
Those of bench/model_debian/, from source packages of Debian, are the test set.

The model runs in QEMU's system emulation, because Debian's qemu-user is built without plugins.
Without ``--kernel`` and ``--guest`` (the artifact of a ``guest`` step) it takes those of `make
demo` from the store. Programs are timed in two runs, whose agreement with each other bounds that of
any model. ``--only-time`` adds one such run to those of the last call, for when the machine is
idle, and models nothing; ``--again`` repeats the modelling and keeps the times; ``--programs``
names a directory in which built programs and packages are kept and reused; ``--only`` leaves out
all other programs; ``--page`` only rewrites the page. Writes FILE.json and FILE.md, by default
docs/benchmarks/model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from platform import machine
from typing import Any

from measure import demo
from measure.model_programs import Program, load, names

from mepof.device import agent
from mepof.device.protocol import DEVICES, Interval, Session
from mepof.errors import InputError, WorkError
from mepof.pmu.core import load_core
from mepof.pmu.events import cycles_of
from mepof.process import find_tool, run
from mepof.toolchain import clang

ROOT = Path(__file__).parents[1]
TRAINING = ROOT / "bench" / "model"
ABI = ROOT / "native" / "abi"
RESULT = ROOT / "docs" / "benchmarks" / "model"
PLAIN = "plain"
#: In percent: another layout alone can change a program's speed by as much.
LAYOUT_NOISE = 1.3
#: Of all builds, and of those that the machine tells apart.
MIN_CORRELATION, MAX_ERROR = 0.9, 3.0
# Of which a program's own clock takes the least, so that what others do to it counts little.
NATIVE_TURNS = 5
RUNS = 2

# By program and variant, of each round.
Nanoseconds = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Variant:
    """One way to build the programs, and its description on the page."""

    name: str
    description: str
    flags: tuple[str, ...] = ()
    trained: bool = False
    bolt: tuple[str, ...] = ()


VARIANTS = (
    Variant(PLAIN, "as they are"),
    Variant("pgo", "with PGO, trained with the same work on other data", trained=True),
    Variant("unplaced", "without placement of blocks", ("-mllvm", "-disable-block-placement")),
    Variant(
        "reversed",
        "with the blocks of each function in reverse order, by BOLT",
        ("-Wl,--emit-relocs",),
        bolt=("--reorder-blocks=reverse", "--skip-funcs=main"),
    ),
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
    """A speed-up over the plain build, in percent.

    Attributes:
        native: of all rounds of all runs, the median.
        native_low: where their middle half begins.
        runs: of each run, the median.
        modelled: predicted.
    """

    program: str
    variant: str
    native: float
    native_low: float
    native_high: float
    runs: tuple[float, ...]
    modelled: float

    @property
    def error(self) -> float:
        """Percentage points by which the model is wrong."""
        return abs(self.modelled - self.native)

    @property
    def is_beyond_noise(self) -> bool:
        """Whether this machine tells the builds apart: the median is beyond the noise of layouts,
        and the middle half of the rounds, and every run, are on the same side of zero."""
        if abs(self.native) < LAYOUT_NOISE:
            return False
        ends = (self.native_low, self.native_high, *self.runs)
        return all(end > 0 for end in ends) or all(end < 0 for end in ends)


def core_of_machine() -> str:
    """The core that is most like this machine's."""
    return "zen4" if "AMD" in demo.processor() else "skylake"


def build(program: Program, variant: Variant, directory: Path) -> Path:
    """One program, built in one way."""
    tools = clang.TOOLCHAIN.select(None)
    linker = find_tool(tools.tool("linker"))
    command = [tools.tool("compiler"), "-std=gnu17", "-O2", "-static", f"--ld-path={linker}"]
    command += [f"-I{ABI}", f"-I{ABI / machine()}", *program.flags]
    files = [*map(str, program.files), "-lm"]
    made = directory / f"{program.name}.{variant.name}"
    if made.exists():
        return made
    flags = [*variant.flags]
    if variant.trained:
        trainee, raw, profile = (made.with_suffix(s) for s in (".train", ".profraw", ".profdata"))
        run([*command, "-fprofile-generate", "-o", trainee, *files])
        run([trainee, "train", "3"], env={"LLVM_PROFILE_FILE": str(raw)})
        run([tools.tool("profile-merger"), "merge", "-o", profile, raw])
        flags += [f"-fprofile-use={profile}"]
    if variant.bolt:
        linked = made.with_suffix(".linked")
        run([*command, *flags, "-o", linked, *files])
        run([tools.program("llvm-bolt"), *variant.bolt, "-o", made, linked])
        made.chmod(0o755)
    else:
        run([*command, "-s", *flags, "-o", made, *files])
    return made


def timed(built: Mapping[tuple[str, str], Path], rounds: int) -> dict[str, Any]:
    """A run of timing: CPU time of the same work, one a round, the variants of a program
    alternating, on one CPU; and the machine's load before it."""
    load = f"{os.getloadavg()[0]:.1f}"
    taken: Nanoseconds = {}
    pinned = [find_tool("taskset"), "-c", str(max(os.sched_getaffinity(0)))]
    for number in range(rounds):
        for (program, variant), path in built.items():
            *least, _ = run([*pinned, path, "time", str(NATIVE_TURNS)]).output.split()
            taken.setdefault(program, {}).setdefault(variant, []).append(sum(map(float, least)))
        print(f"round {number + 1} of {rounds} timed", file=sys.stderr, flush=True)
    return {"load": load, "rounds": rounds, "nanoseconds": taken}


def modelled(
    built: Mapping[tuple[str, str], Path], session: Session, scratch: Path
) -> dict[str, dict[str, Interval]]:
    """Two rounds of work on the core, by program and variant; one boot for each variant."""
    found: dict[str, dict[str, Interval]] = {}
    for variant in dict.fromkeys(kind for _, kind in built):
        names = [program for program, kind in built if kind == variant]
        requests: list[agent.Request] = []
        for program in names:
            data = built[program, variant].read_bytes()
            requests.append(agent.Put("/tmp/program", 0o755, data))
            requests.append(agent.Exec(("/tmp/program", "model"), 600))
        booted = replace(session, requests=tuple(requests))
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
    """The longer less the shorter, which cancels the cold core."""
    found: dict[str, Any] = {}
    for field in fields(Interval):
        one, other = getattr(long, field.name), getattr(short, field.name)
        found[field.name] = (
            {name: max(0, one[name] - other[name]) for name in one}
            if isinstance(one, dict)
            else one - other
        )
    return Interval(**found)


def cycles(interval: Interval) -> float:
    """Modelled cycles of the program."""
    assert interval.user_events is not None
    return sum(cycles_of(interval.user_events).values())


def speed_ups(nanoseconds: Nanoseconds, program: str, variant: str) -> list[float]:
    """Of each round over the plain build, in percent."""
    of = nanoseconds[program]
    return [100 * (plain / one - 1) for plain, one in zip(of[PLAIN], of[variant], strict=True)]


def points(runs: Sequence[Mapping[str, Any]], model: dict[str, dict[str, Interval]]) -> list[Point]:
    """Every variant of every program against its plain build."""
    found = []
    for program, variants in model.items():
        for variant in variants:
            if variant == PLAIN:
                continue
            each = [speed_ups(run["nanoseconds"], program, variant) for run in runs]
            ratios = sorted(ratio for one in each for ratio in one)
            quarter = len(ratios) // 4
            predicted = cycles(model[program][PLAIN]) / cycles(model[program][variant])
            found.append(
                Point(
                    program,
                    variant,
                    statistics.median(ratios),
                    ratios[quarter],
                    ratios[-1 - quarter],
                    tuple(map(statistics.median, each)),
                    100 * (predicted - 1),
                )
            )
    return found


def agreement(found: Sequence[Point]) -> dict[str, float]:
    """Spearman's rank correlation and the median error in percentage points, of the model with
    the machine and, if there are two runs, of the machine's first with its last."""
    from scipy.stats import spearmanr

    def of(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
        errors = [abs(a - b) for a, b in zip(one, other, strict=True)]
        return float(spearmanr(one, other).statistic), statistics.median(errors)

    native, modelled = [p.native for p in found], [p.modelled for p in found]
    correlation, error = of(native, modelled)
    agreed = {
        "points": len(found),
        "rank_correlation": correlation,
        "median_error": error,
        # Of the line through zero: how many modelled points are one native one.
        "slope": sum(n * m for n, m in zip(native, modelled, strict=True))
        / sum(n * n for n in native),
    }
    if all(len(p.runs) > 1 for p in found):
        repeated, noise = of([p.runs[0] for p in found], [p.runs[-1] for p in found])
        agreed |= {"repeated_rank_correlation": repeated, "repeated_median_error": noise}
    return agreed


def compared(
    name: str,
    runs: Sequence[Mapping[str, Any]],
    model: dict[str, dict[str, Interval]],
    machine: Mapping[str, Any],
    sources: Path,
) -> dict[str, Any]:
    """Everything that goes into the JSON."""
    found = points(runs, model)
    kinds = {"all": found, "beyond noise": [p for p in found if p.is_beyond_noise]} | {
        v.name: some for v in VARIANTS if (some := [p for p in found if p.variant == v.name])
    }
    variants = [v.name for v in VARIANTS if v.name in kinds]
    return {
        "command": f"bench/model.py --core {name} --rounds {runs[0]['rounds']} "
        + ("" if len(model) == len(names(sources)) else f"--only {','.join(model)} ")
        + f"--variants {','.join(variants)}",
        "core": name,
        "sources": str(sources.relative_to(ROOT)),
        "machine": dict(machine),
        "programs": list(model),
        "variants": [PLAIN, *variants],
        "agreement": {kind: agreement(some) for kind, some in kinds.items() if len(some) > 1},
        "points": [
            {**vars(p), "error": p.error, "is_beyond_noise": p.is_beyond_noise} for p in found
        ],
        "runs": list(runs),
        "modelled": {
            program: {variant: vars(interval) for variant, interval in intervals.items()}
            for program, intervals in model.items()
        },
    }


def rescored(result: dict[str, Any]) -> dict[str, Any]:
    """Recorded results, with their agreement computed again."""
    model = {
        program: {variant: Interval(**interval) for variant, interval in by.items()}
        for program, by in result["modelled"].items()
    }
    sources = ROOT / result.get("sources", "bench/model")
    return compared(result["core"], result["runs"], model, result["machine"], sources)


def page(result: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = "\n".join(
        f"| {p['program']} | {p['variant']} | {p['native']:+.1f} | {p['native_low']:+.1f} to "
        f"{p['native_high']:+.1f} | {'' if p['is_beyond_noise'] else '≈ 0'} "
        f"| {p['modelled']:+.1f} | {p['error']:.1f} |"
        for p in result["points"]
    )
    by_kind = "\n".join(
        f"| {name} | {a['points']:.0f} | {a['rank_correlation']:.2f} | {a['median_error']:.1f} "
        + f"| {a['slope']:.2f} | {_verdict(a)} "
        + (
            f"| {a['repeated_rank_correlation']:.2f} | {a['repeated_median_error']:.1f} |"
            if "repeated_median_error" in a
            else "| not repeated | |"
        )
        for name, a in result["agreement"].items()
    )
    machine = result["machine"]
    builds = "\n".join(
        f"- {v.name}: {v.description}" for v in VARIANTS if v.name in result["variants"]
    )
    loads = " and ".join(run["load"] for run in result["runs"])
    rounds = " and ".join(str(run["rounds"]) for run in result["runs"])
    what = _TRAINING if result["sources"] == "bench/model" else _TEST
    return f"""# The model against hardware: {what[0]}

Command: `make bench-model` (`{result["command"]}`).

{what[1]}

{len(result["programs"])} programs of {result["sources"]}/, compiled by clang -O2:
{builds}

Each round of a program's work uses other data, so that no predictor memorises it; the native and
the modelled programs do the same work on the same data.

The speed-up over the plain build, in percent: *native*, CPU time on {machine["cpu"]}, in
{len(result["runs"])} runs of {rounds} rounds in which the builds alternate, each round the least of
{NATIVE_TURNS} turns: the median, and the middle half of the rounds; and *modelled*, cycles of the
core `{result["core"]}` ([the model](../pmu.md)). `≈ 0`: the machine itself does not tell the builds
apart, since the middle half of the rounds, or the runs, are on both sides of zero, or the median is
below {LAYOUT_NOISE} points, which another layout alone can cause. At the start of the runs the
machine's load was {loads} on {machine["cores"]} cores.

| | points | rank correlation | median error | slope | targets | repeated: correlation | error |
| --- | --- | --- | --- | --- | --- | --- | --- |
{by_kind}

The targets were first set for all points: a rank correlation of at least {MIN_CORRELATION} and a
median error below {MAX_ERROR:.0f} points. Later they were narrowed to the builds that the machine
tells apart, since for others there is no order to predict. Both are listed, met or not. The slope
is that of the line through zero: above 1 the model exaggerates. Errors are in points. The last two
columns compare the first native run with the last, if there are two: no model can do better.

| program | build | native | middle half | | modelled | error |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""


_TRAINING = (
    "the training set",
    """The model was compared with these programs while it was developed, so how well it does here
says little about other code. For that there is [the test set](model-test.md) of
bench/model_debian/.""",
)
_TEST = (
    "the test set",
    """Interpreters, compressors, parsers and a database from Debian's source packages, as they are.
The model was never changed after looking at them, unlike [the training set](model.md).""",
)


def _verdict(agreed: Mapping[str, float]) -> str:
    met = agreed["rank_correlation"] >= MIN_CORRELATION and agreed["median_error"] < MAX_ERROR
    return "met" if met else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=Path, default=TRAINING)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--guest", type=Path)
    parser.add_argument("--core", default=core_of_machine())
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only-time", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--variants", default="pgo,unplaced,reversed")
    arguments = parser.parse_args()
    core = load_core(arguments.core)
    sources = arguments.sources.resolve()
    data = arguments.out.with_suffix(".json")
    written = arguments.out.with_suffix(".md")
    if arguments.page:
        written.write_text(page(rescored(json.loads(data.read_text()))), encoding="utf-8")
        return
    wanted = {PLAIN, *arguments.variants.split(",")}
    chosen = [v for v in VARIANTS if v.name in wanted]
    if len(chosen) < 2 or len(chosen) < len(wanted):
        known = ", ".join(v.name for v in VARIANTS[1:])
        raise InputError(f"unknown variants: {arguments.variants}", f"known: {known}")
    known_programs = names(sources)
    only = tuple(sorted(arguments.only.split(","))) if arguments.only else known_programs
    if unknown := [name for name in only if name not in known_programs]:
        raise InputError(f"unknown programs: {', '.join(unknown)}", f"they are in {sources}")
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        idle = demo.idle(arguments.kernel, arguments.guest, scratch)
        session = replace(demo.modelled(idle, arguments.core, scratch), arch=core.arch)
        kept = arguments.programs or scratch
        kept.mkdir(parents=True, exist_ok=True)
        built = {
            (program.name, variant.name): build(program, variant, kept)
            for program in load(sources, only, kept / "packages")
            for variant in chosen
        }
        runs: list[dict[str, Any]] = []
        if arguments.again or arguments.only_time:
            runs = json.loads(data.read_text(encoding="utf-8"))["runs"] if data.exists() else []
        if arguments.only_time:
            runs = [*runs, timed(built, arguments.rounds)][-RUNS:]
        elif not arguments.again:
            runs = [timed(built, arguments.rounds) for _ in range(RUNS)]
        # For --again, should modelling fail.
        data.write_text(json.dumps({"runs": runs}) + "\n", encoding="utf-8")
        if arguments.only_time:
            return
        model = modelled(built, session, scratch)
    machine = {"cpu": demo.processor(), "cores": os.cpu_count()}
    result = compared(arguments.core, runs, model, machine, sources)
    data.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    written.write_text(page(result), encoding="utf-8")
    print(page(result))


if __name__ == "__main__":
    main()
