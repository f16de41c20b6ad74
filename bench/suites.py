"""What a profile does for every suite: one of general, of kbench, or of the suites' own work.

    bench/suites.py [--train general|kbench|own|modules] [--dry-run] [--store DIR] [--report DIR]
                    [PROGRAM…]

Runs the programs of that training for x86-64 and arm64 (kernels to build, then boots of minutes),
or only the named ones. ``--dry-run`` shows what their runs would do; ``--report`` reads the results
of an earlier run of one program instead. Writes docs/benchmarks/suites.json and .md; programs that
did not run keep the results they have there. Ends with status 1 if the image misses a goal of its
program. They need what `MEPOF_SETUP_TOOLS=1
MEPOF_SETUP_ARM64=1 make setup` installs, and arm64 the library that docs/suites/sqlite.md names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from measure.left import geometric, saved
from measure.program import planned, ran, report_of

from mepof.g4 import Source, parse
from mepof.g4.ast import Goal
from mepof.g4.goals import metrics_of, quantity_of
from mepof.suite.cases import groups_by_case

ROOT = Path(__file__).parents[1]
_ROOM = ROOT / "bench" / "suites"
PROGRAMS = {
    "general": (
        _ROOM / "general.g4",
        _ROOM / "general-thinlto.g4",
        _ROOM / "arm64-general.g4",
        _ROOM / "arm64-general-thinlto.g4",
    ),
    "kbench": (
        ROOT / "examples" / "suites.g4",
        _ROOM / "no-pgso.g4",
        _ROOM / "arm64.g4",
        _ROOM / "arm64-no-pgso.g4",
    ),
    "own": (_ROOM / "own.g4", _ROOM / "arm64-own.g4"),
    "modules": (ROOT / "examples" / "modules.g4", _ROOM / "modules-autofdo.g4"),
}
RESULT = ROOT / "docs" / "benchmarks" / "suites"
METRICS = {
    "kernel_instructions": "kernel instructions",
    "kernel_taken_branches": "taken kernel branches",
    "guest_time": "guest time, *modelled*",
}
IMAGE = "opt"
_MEAN = "geomean_improvement_percent"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", choices=PROGRAMS, default="general")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("program", type=Path, nargs="*")
    arguments = parser.parse_args()
    programs = arguments.program or PROGRAMS[arguments.train]
    if arguments.dry_run:
        for program in programs:
            print(program.resolve().relative_to(ROOT), flush=True)
            planned(program, arguments.store)
        return
    if arguments.report is not None and len(arguments.program) != 1:
        parser.error("a report is of one program: name it")
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    missed = False
    for program in programs:
        if arguments.report is not None:
            report = report_of(arguments.report)
        else:
            report = ran(program, ROOT / "out" / "suites" / program.stem, arguments.store)
        name = str(program.resolve().relative_to(ROOT))
        results[name] = summary(report)
        record.write_text(json.dumps(results, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(results))
        for goal in judged(name, results[name]):
            if not goal.met:
                print(f"{name}: missed goal {goal.title}: {goal.found}", file=sys.stderr)
                missed = True
    sys.exit(missed)


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a report: improvements in percent by suite, case and metric."""
    images: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    slower: list[str] = []
    for row in report["cases"]:
        if row["metric"] not in METRICS or row["improvement_percent"] is None:
            continue
        cases = images.setdefault(row["image"], {}).setdefault(row["suite"], {})
        cases.setdefault(row["case"], {})[row["metric"]] = row["improvement_percent"]
        worse = row["metric"] == "kernel_instructions" and row["verdict"] == "slower"
        if worse and row["image"] == IMAGE:
            slower.append(f"{row['suite']}/{row['case']}")
    return {
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "suites": images.pop(IMAGE, {}),
        "options": images,
        "slower": slower,
        "by_training": [
            {key: row[key] for key in ("training", "metric", "cases", _MEAN, "interval_percent")}
            for row in report["by_training"]
            if row["image"] == IMAGE and row["metric"] in METRICS
        ],
    }


@dataclass(frozen=True)
class Judged:
    """Whether the image meets a goal of its program.

    Attributes:
        title: as the program writes it.
    """

    title: str
    found: str
    met: bool


def judged(name: str, result: dict[str, Any]) -> Iterator[Judged]:
    """The goals of a program, by the results that are kept of it."""
    groups = groups_by_case()
    cases = {
        f"{s}/{c}": by for s, of_suite in result["suites"].items() for c, by in of_suite.items()
    }
    for goal in parse(Source.read(ROOT / name)).program.statements:
        if not isinstance(goal, Goal):
            continue
        quantity, group = quantity_of(goal)
        (metric,) = metrics_of(goal)
        left = {
            case: 100 / (1 + by[metric] / 100)
            for case, by in cases.items()
            if metric in by and group in (None, groups[case])
        }
        worst = max(left, key=lambda case: left[case])
        found = left[worst] if quantity == "worst" else geometric(left)
        yield Judged(
            f"{goal.quantity.text} {goal.bound.text}",
            saved(found) + (f", `{worst}`" if quantity == "worst" else ""),
            100 - found >= float(goal.bound.text),
        )


def _goals(name: str, result: dict[str, Any]) -> str:
    rows = "".join(
        f"| `{goal.title}` | {goal.found} | {'met' if goal.met else 'missed'} |\n"
        for goal in judged(name, result)
    )
    return f"\n| goal | percent fewer | |\n| --- | --- | --- |\n{rows}" if rows else ""


def _mean(percents: Sequence[float]) -> str:
    """The geometric mean of improvements in percent."""
    if not percents:
        return "none"
    return f"{100 * (geometric_mean(1 + one / 100 for one in percents) - 1):+.1f}"


def page(results: dict[str, Any]) -> str:
    """The results as a page."""
    return _PAGE + "".join(_section(name, results[name]) for name in sorted(results))


def _section(name: str, result: dict[str, Any]) -> str:
    return _SECTION.format(
        program=name,
        kernel=result["kernel"],
        clang=result["tools"]["clang"],
        titles=" | ".join(METRICS.values()),
        lines="| --- " * (len(METRICS) + 2) + "|",
        training="\n".join((*_training(result["by_training"]), *_options(result))),
        suites="\n".join(_suites(result["suites"])),
        goals=_goals(name, result),
        slower="\n".join(_slower(result)) or "None.",
    )


_BY_NAME = {True: "trained", False: "untrained"}


def _training(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    # Earlier reports only said whether the training ran a case, by its name.
    kinds = [row.get("training") or _BY_NAME[row["trained"]] for row in rows]
    for kind in dict.fromkeys(kinds):
        found = {row["metric"]: row for k, row in zip(kinds, rows, strict=True) if k == kind}
        cases = found["kernel_instructions"]["cases"]
        means = " | ".join(f"{found[metric][_MEAN]:+.1f}" for metric in METRICS)
        yield f"| {kind} | {cases} | {means} |"


def _options(result: dict[str, Any]) -> Iterator[str]:
    """Images without a profile, which show what the options of the other one gain."""
    for image, suites in result.get("options", {}).items():
        cases = [by for of_suite in suites.values() for by in of_suite.values()]
        means = (_mean([by[metric] for by in cases if metric in by]) for metric in METRICS)
        yield f"| `{image}` alone | {len(cases)} | {' | '.join(means)} |"


def _suites(suites: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    for suite, cases in sorted(suites.items()):
        means = (_mean([by[metric] for by in cases.values() if metric in by]) for metric in METRICS)
        yield f"| [`{suite}`](../suites/{suite}.md) | {len(cases)} | {' | '.join(means)} |"


def _slower(result: dict[str, Any]) -> Iterator[str]:
    for name in result["slower"]:
        suite, _, case = name.partition("/")
        yield f"- `{name}`: {result['suites'][suite][case]['kernel_instructions']:+.1f} %"


_PAGE = """# Every suite, for a profile of general, of kbench or of its own work

`make bench-suites` trains the kernel on [`general`](../general.md) alone, of which nothing is a
case of a suite; `bench/suites.py --train kbench` on `rand kbench` alone, which does the work of the
suite `mepof`; and `make bench-suites-own` on the suites themselves, by AutoFDO and Propeller with
ThinLTO. `bench/suites.py --train modules` trains on two suites and measures them where the file
system, the block device and the network cable are [modules](../modules.md). Each writes its
sections of this page.

The tables give baseline / cost - 1 in percent: +10 means that the plain kernel takes 10 % more, so
the image takes 9.1 % fewer. They are geometric means over the cases that do such work at all;
instructions and branches are counted. A row such as *`ThinLTO` alone* is of an image with the same
options and no profile. *Trained*, *near* and *far* cases are told apart [by the functions that they
execute](../statistics.md#trained-near-and-far-cases); *untrained* ones, in older sections, by their
names.

A [goal](../g4.md#goal-quantity-bound-metric) of a program is about kernel instructions: 1 - cost /
baseline in percent, of the image with the profile.

Cases that take more kernel instructions with the profile than without it, beyond chance, are listed
below each table. The sections of `kbench` were measured when code that never ran was compiled for
size, which is the option `ColdSmall` ([options](../configs.md#recompilation-options)) now; those of
`general` and of the suites' own work are
[without it](../decisions/0023-unknown-not-cold.md).
"""

_SECTION = """
## [{program}](../../{program})

{kernel}, {clang}

| | cases | {titles} |
{lines}
{training}

| suite | cases | {titles} |
{lines}
{suites}
{goals}
More kernel instructions:

{slower}
"""


if __name__ == "__main__":
    main()
