"""By hand against mepof: what each stage of optimising a kernel takes, and what a person does.

    bench/by_hand.py [--rounds N]

Each round runs bench/published/by-hand.g4 with an empty store, and then bench/published/by-hand.sh,
which does the same with the kernel's own gcov as documentation describes it. Six kernels a round:
hours on two cores. An interrupted run continues with the round in which it ended. Writes
docs/benchmarks/by-hand.json and .md after every round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import geometric_mean, mean
from textwrap import fill
from typing import Any

from measure import demo
from measure.left import left_percent
from measure.program import compiler, ran

from mepof.errors import WorkError
from mepof.plan.journal import JournalledRun, read_runs
from mepof.plan.store import Store
from mepof.process import run

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "bench" / "published"
RESULT = ROOT / "docs" / "benchmarks" / "by-hand"
SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")

#: The stages, each with its title and what MEPOF's Table I counts of it.
STAGES = {
    "preparation": ("preparation", "some"),
    "plain": ("the plain kernel, to compare with", ""),
    "instrumentation": ("instrumentation", "1,241 lines"),
    "instrumented": ("compilation", "3 instructions"),
    "training": ("booting it, and training", "2 instructions, n clicks"),
    "transfer": ("transfer and conversion of the profile", "2 instructions"),
    "recompilation": ("recompilation", "3 instructions"),
    "measurement": ("measurement", ""),
}
#: Which stage a step of mepof belongs to.
STEPS = {
    **dict.fromkeys(("source", "guest", "plugins", "executions"), "preparation"),
    "plain/build": "plain",
    **dict.fromkeys(("opt/scout", "opt/executed"), "instrumentation"),
    "opt/instrument": "instrumented",
    "opt/collect": "training",
    "opt/profile": "transfer",
    "opt/build": "recompilation",
    **dict.fromkeys(("measure", "executed", "report"), "measurement"),
}


@dataclass(frozen=True)
class Way:
    """One of the two ways, in one round.

    Attributes:
        seconds: by stage.
        total: seconds from its start to its end.
        commands: that a person types, by stage.
        lines: that a person writes, by stage.
        gain_percent: more operations per second of the guest's clock than with the plain kernel,
            geometric mean over the cases.
    """

    seconds: dict[str, float]
    total: float
    gain_percent: float
    commands: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("give one round or more")
    record = RESULT.with_suffix(".json")
    rounds = json.loads(record.read_text())["rounds"] if record.is_file() else []
    for number in range(len(rounds), arguments.rounds):
        out = ROOT / "out" / "by-hand" / str(number + 1)
        shutil.rmtree(out, ignore_errors=True)
        results = measured(out, rounds)
        rounds = results["rounds"]
        record.write_text(json.dumps(results, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(results))
        shutil.rmtree(out)


def measured(out: Path, before: list[Any]) -> dict[str, Any]:
    """Run both ways, and give what is known of the rounds before and of this one."""
    program = PROGRAMS / "by-hand.g4"
    report = ran(program, out / "run", out / "store")
    journal = read_runs(out / "run")[-1]
    run(["make", "-s", "-C", ROOT / "native", f"OUT={out / 'native'}"])
    config = Store(out / "store").object(str(journal.steps["plain/build"].digest)) / "config"
    words = [SOURCE, config, out / "native" / "kbench", PROGRAMS / "person.txt", out / "manual"]
    run([PROGRAMS / "by-hand.sh", *words])
    both = {
        "hand": by_hand((out / "manual" / "record").read_text(encoding="utf-8").splitlines()),
        "mepof": by_mepof(journal, report, program.read_text(encoding="utf-8")),
    }
    return {
        "machine": {"cores": os.cpu_count(), "processor": demo.processor()},
        "kernel": report["provenance"]["kernel"],
        "compiler": compiler(report["provenance"]),
        "rounds": [*before, {name: asdict(way) for name, way in both.items()}],
    }


def by_hand(record: Iterable[str]) -> Way:
    """What bench/published/by-hand.sh recorded.

    Raises:
        WorkError: it did not record every stage and both kernels.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    commands: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    costs: dict[str, dict[str, float]] = {}
    for line in record:
        kind, name, *rest = line.split()
        if kind == "seconds":
            seconds[name] += float(rest[0])
        elif kind == "typed":
            commands[name] += 1
        elif kind == "written":
            lines[name] += int(rest[0])
        elif kind == "measured":
            costs.setdefault(name, {})[rest[0]] = float(rest[1]) / float(rest[2])
    plain, optimised = costs.get("plain", {}), costs.get("build", {})
    if not plain or plain.keys() != optimised.keys() or set(seconds) != set(STAGES):
        raise WorkError(
            "the procedure by hand did not record all of its stages and cases",
            "run bench/published/by-hand.sh by itself, and see its log",
        )
    gain = geometric_mean(plain[case] / optimised[case] for case in plain)
    return Way(
        seconds=dict(seconds),
        total=round(sum(seconds.values()), 3),
        gain_percent=100 * (gain - 1),
        commands=dict(commands),
        lines=dict(lines),
    )


def by_mepof(journal: JournalledRun, report: Mapping[str, Any], program: str) -> Way:
    """What a run of a program took, and the program itself, which is all that a person writes.

    Raises:
        WorkError: the run has a step that belongs to no stage, or did not end.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    for step in journal.steps.values():
        if step.step not in STEPS:
            raise WorkError(f"the step {step.step} belongs to no stage", "edit bench/by_hand.py")
        seconds[STEPS[step.step]] += step.seconds
    if journal.ended is None:
        raise WorkError("the run did not end", "run bench/by_hand.py again")
    began, ended = map(datetime.fromisoformat, (journal.started, journal.ended))
    (left,) = left_percent(report, {"guest_time"}).values()
    written = [line for line in program.splitlines() if line.strip() and line[0] != "#"]
    return Way(
        seconds={name: round(value, 3) for name, value in seconds.items()},
        total=round((ended - began).total_seconds(), 3),
        gain_percent=100 * (100 / geometric_mean(left["guest_time"].values()) - 1),
        commands={"preparation": 1},
        lines={"preparation": len(written)},
    )


def page(results: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    rounds = results["rounds"]
    if not rounds:
        return _PAGE.format(
            made="`make bench-by-hand` writes this page.", results="Not measured yet."
        )
    hand, mepof = ([each[name] for each in rounds] for name in ("hand", "mepof"))
    rows = [
        _row(
            title,
            theirs,
            *(_many(hand[-1][what].get(name, 0)) for what in ("commands", "lines")),
            *(_many(mepof[-1][what].get(name, 0)) for what in ("commands", "lines")),
            *(
                f"{mean(way['seconds'].get(name, 0.0) for way in ways):,.0f}"
                for ways in (hand, mepof)
            ),
        )
        for name, (title, theirs) in STAGES.items()
    ]
    sums = [sum(way[-1][what].values()) for way in (hand, mepof) for what in ("commands", "lines")]
    totals = [[way["total"] for way in ways] for ways in (hand, mepof)]
    rows.append(_row("all", "", *map(_many, sums), *(f"{mean(total):,.0f}" for total in totals)))
    gains = [mean(way["gain_percent"] for way in ways) for ways in (hand, mepof)]
    saved = 100 * (1 - mean(totals[1]) / mean(totals[0]))
    outcome = (
        f"In {'one round' if len(rounds) == 1 else f'{len(rounds)} rounds'}, by hand took "
        f"{_range(totals[0])} seconds and mepof "
        f"{_range(totals[1])}: {abs(saved):.1f} % {'less' if saved > 0 else 'more'} in the mean. "
        f"Theirs took up to 39.07 % less than `pgo` by hand, and 20.69 % less than `cspgo`. "
        f"The kernel made by hand does {gains[0]:.1f} % more operations per second of the guest's "
        f"clock than the plain one (*modelled*), mepof's {gains[1]:.1f} %; theirs do 8.02 % and "
        f"9.39 % more."
    )
    machine = results["machine"]
    made = (
        f"`make bench-by-hand` writes this page: {results['kernel']}, {results['compiler']}, "
        f"{machine['cores']} cores, {machine['processor']}; *native* seconds of the wall."
    )
    return _PAGE.format(
        made=fill(made, 100, break_on_hyphens=False),
        results="\n".join([_row(*_HEADS), _row(*["---"] * len(_HEADS)), *rows])
        + f"\n\n{fill(outcome, 100, break_on_hyphens=False)}",
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _many(number: int) -> str:
    return str(number) if number else ""


def _range(values: list[float]) -> str:
    low, high = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return low if low == high else f"{low} to {high}"


_HEADS = (
    "stage",
    "theirs, by hand",
    "commands by hand",
    "lines by hand",
    "commands for mepof",
    "lines for mepof",
    "seconds by hand",
    "seconds by mepof",
)

_PAGE = """# By hand, and by mepof

{made}

Zong et al. time seven stages of optimising a kernel by hand and by their MEPOF (Fig. 4c), and count
what a person does in each (Table I). This repeats both for Debian's Linux 6.12, `slim`, on x86-64,
trained with the same list of actions of kbench and measured with its eight cases.

**By hand** is [`bench/published/by-hand.sh`](../../bench/published/by-hand.sh): what the kernel's
`Documentation/dev-tools/gcov.rst` and GCC's manual describe. `CONFIG_GCOV_KERNEL` is the only
instrumentation of a whole kernel that is in mainline and whose counts a compiler reads
(`-fprofile-use`); Clang's needs a patch that is not. So nothing of the source changes, where theirs
changes 1,241 lines. Neither document says why two things in the script are needed: GCC 12 silently
leaves these counts unused until `gcov-tool` adds the summary that the kernel's gcov does not write,
and lines that moved in a generated file stop the build unless an option allows it. The time to find
that out is in no figure. Each command that a person types and waits for counts, on the host and at
the guest's console, and each line that they write: configuration, the guest's first process, the
script that gathers counts. A script types them, so the seconds are those of the machine: nobody
reads, thinks, or makes a mistake.

**By mepof** is [`bench/published/by-hand.g4`](../../bench/published/by-hand.g4), `gcc-pgo` with an
empty store. Its seconds are those of its steps, some of which run at the same time, so that they
may add up to more than the whole. What it does besides is in them: before it instruments, it
records which files run; a kernel with a profile must boot.

{results}
"""


if __name__ == "__main__":
    main()
