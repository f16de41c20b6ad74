"""What a profile gains on work that is like the training's, and on work that is not.

    bench/overlap.py [--config NAME] [--apps NAME,…] [--store DIR] [--counts DIR]

Counts the instructions that every action of the apps for training and every case of the suites
executes in each function of a plain kernel, in one boot for each app, and compares the cases with
the actions. The gains are those of docs/benchmarks/suites.json and leave-one-out.json. ``--counts``
is the directory that keeps counts, so that a later call continues with what is missing; ``--apps``
names those to count now. Cases that the kernel cannot run are left out. Writes
docs/benchmarks/overlap.json and .md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

from measure.located import LocatingKernel
from measure.overlap import KINDS, Counts, kind_of, likeness

from mepof.app.apps import load_app
from mepof.kernel.description import BuildDescription
from mepof.plan.store import default_store
from mepof.suite.cases import load_suite, suite_names
from mepof.toolchain.named import select

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "overlap"
SUITES = ROOT / "docs" / "benchmarks" / "suites.json"
LEFT_OUT = ROOT / "docs" / "benchmarks" / "leave-one-out.json"
ARCH = "x86-64"
# What each program of suites.json was trained by.
PROGRAMS = {
    "bench/suites/general.g4": "general",
    "bench/suites/arm64-general.g4": "general",
    "bench/suites/no-pgso.g4": "kbench",
    "bench/suites/arm64-no-pgso.g4": "kbench",
    "examples/suites.g4": "kbench",
    "bench/suites/arm64.g4": "kbench",
}
TRAINING = tuple(dict.fromkeys(PROGRAMS.values()))
METRIC = "kernel_instructions"
# Of the curve, in percent of overlap.
BINS = ((0, 50), (50, 60), (60, 70), (70, 80), (80, 98), (98, 101))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--config", default="suites")
    parser.add_argument("--apps")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--counts", type=Path, default=ROOT / "out" / "overlap")
    arguments = parser.parse_args()
    suites = [s for s in suite_names() if ARCH in (load_suite(s).architectures or (ARCH,))]
    every = (*TRAINING, *suites)
    wanted = every if arguments.apps is None else tuple(arguments.apps.split(","))
    counts = {app: arguments.counts / f"{app}.json" for app in every}
    kernel = LocatingKernel(arguments.config, every, arguments.store or default_store())
    with TemporaryDirectory() as scratch:
        build = BuildDescription.read(kernel.make(Path(scratch) / "run"))
        for app in wanted:
            if not counts[app].is_file():
                found = kernel.instructions(app, Path(scratch) / app)
                arguments.counts.mkdir(parents=True, exist_ok=True)
                counts[app].write_text(json.dumps(found))
    read = {app: json.loads(path.read_text()) for app, path in counts.items() if path.is_file()}
    result = {
        "kernel": f"Linux {build.version}",
        "config": arguments.config,
        "clang": select("clang").identity()["clang"],
        "cases": alike(
            {app: read[app] for app in TRAINING if app in read},
            {suite: read[suite] for suite in suites if suite in read},
        ),
        "left_out": left_out(read["kbench"]) if "kbench" in read else {},
    }
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    gains = json.loads(SUITES.read_text())
    by_metric = json.loads(LEFT_OUT.read_text())["rows"]
    RESULT.with_suffix(".md").write_text(page(result, gains, by_metric))


def alike(
    training: Mapping[str, Mapping[str, Counts]], suites: Mapping[str, Mapping[str, Counts]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """How like each app's actions each case is: by app, then by ``suite/case``."""
    return {
        app: {
            f"{suite}/{case}": vars(likeness(counts, actions))
            for suite, cases in suites.items()
            for case, counts in cases.items()
        }
        for app, actions in training.items()
    }


def left_out(counts: Mapping[str, Counts]) -> dict[str, dict[str, Any]]:
    """How like the rest of kbench's actions each case is when the training leaves out its metric,
    and every mix with it.

    Args:
        counts: of every action of kbench, among which the cases of the suite mepof are.
    """
    cases = {case.name: case for case in load_suite("mepof").cases}
    includes = {action.name: action.includes for action in load_app("kbench").actions}

    def trains(action: str, metric: str) -> bool:
        own = cases[action].metric if action in cases else None
        return own != metric and metric not in includes[action]

    return {
        name: vars(
            likeness(
                counts[name],
                {action: of for action, of in counts.items() if trains(action, case.metric)},
            )
        )
        for name, case in cases.items()
        if name in counts
    }


def page(
    result: Mapping[str, Any], gains: Mapping[str, Any], by_metric: Sequence[Mapping[str, Any]]
) -> str:
    """The results as a page."""
    sections = [
        _section(program, app, result["cases"][app], gains[program])
        for program, app in PROGRAMS.items()
        if program in gains and app in result["cases"]
    ]
    head = _PAGE.format(
        kernel=result["kernel"],
        clang=result["clang"],
        config=result["config"],
        **KINDS,
    )
    return head + "".join((*sections, _left_out(result["left_out"], by_metric)))


def _left_out(alike: Mapping[str, Mapping[str, Any]], gains: Sequence[Mapping[str, Any]]) -> str:
    rows = sorted(
        ((alike[row["case"]], row) for row in gains if row["case"] in alike),
        key=lambda pair: -pair[0]["percent"],
    )
    if not rows:
        return ""
    by_kind = {
        kind: [row for found, row in rows if kind_of(found["percent"]) == kind] for kind in KINDS
    }
    return _LEFT_OUT.format(
        means="\n".join(
            f"| {kind} | {len(found)} | {_mean(row['left_out_percent'] for row in found):+.1f} "
            f"| {_mean(row['trained_percent'] for row in found):+.1f} |"
            for kind, found in by_kind.items()
            if found
        ),
        rows="\n".join(
            f"| `{row['case']}` | {kind_of(found['percent'])} | {found['percent']:.1f} "
            f"| `{found['nearest']}` | {row['left_out_percent']:+.1f} "
            f"| {row['trained_percent']:+.1f} |"
            for found, row in rows
        ),
    )


def _section(
    program: str, app: str, alike: Mapping[str, Mapping[str, Any]], gains: Mapping[str, Any]
) -> str:
    rows = sorted(
        (
            (alike[name]["percent"], name, alike[name]["nearest"], case[METRIC])
            for suite, cases in gains["suites"].items()
            for short, case in cases.items()
            if METRIC in case and (name := f"{suite}/{short}") in alike
        ),
        reverse=True,
    )
    kinds = {
        kind: [gain for percent, *_, gain in rows if kind_of(percent) == kind] for kind in KINDS
    }
    return _SECTION.format(
        program=program,
        app=app,
        kernel=gains["kernel"],
        kinds="\n".join(_mean_row(kind, found) for kind, found in kinds.items()),
        curve="\n".join(
            _mean_row(
                f"{low} to {min(high, 100)} %",
                [gain for percent, *_, gain in rows if low <= percent < high],
            )
            for low, high in BINS
        ),
        cases="\n".join(
            f"| `{name}` | {percent:.1f} | `{nearest}` | {gain:+.1f} |"
            for percent, name, nearest, gain in rows
        ),
    )


def _mean(gains: Iterable[float]) -> float:
    return 100 * (geometric_mean(1 + gain / 100 for gain in gains) - 1)


def _mean_row(name: str, gains: Sequence[float]) -> str:
    if not gains:
        return f"| {name} | 0 | | |"
    return (
        f"| {name} | {len(gains)} | {_mean(gains):+.1f} | {min(gains):+.1f} to {max(gains):+.1f} |"
    )


_PAGE = """# Gains on work that is near the training, and on work that is far

`make bench-overlap` writes this page (this one: `bench/overlap.py --config {config}`). It counts
the instructions that every action of a training and every case of the [suites](../suites.md)
executes in each function of a plain kernel for x86-64, and compares the cases with the actions by
what ran, not by their names. Cases that this kernel cannot run and suites that were not counted yet
are left out. {kernel}, {clang}.

- a function's *share* is the part of all instructions that lies in it;
- the *overlap* of a case with a training is the sum over the functions of the case's share or of
  the largest share that an action of the training has there, whichever is smaller. 100 %: some
  action spends as much of its work in each function as the case does;
- a case is *trained* from an overlap of {trained:.0f} % on, whatever it is called, *near* the
  training from {near:.0f} % on, and *far* below.

The gain does not follow from the overlap alone: the small part of a system call's work that is its
own can be where a profile gains most.

Gains are baseline / cost - 1 in percent, of kernel instructions (*counted*), from
[every suite](suites.md); means are geometric. For arm64 the overlap is that of x86-64, whose
kernel's functions mostly have the same names. The gains of every training by `kbench` were measured
when functions that never ran still counted as cold;
[by default they are unknown](../decisions/0023-unknown-not-cold.md) now.
"""

_SECTION = """
## [{program}](../../{program}), trained by `{app}`

{kernel}

| | cases | gain | from the least to the largest |
| --- | --- | --- | --- |
{kinds}

| overlap | cases | gain | from the least to the largest |
| --- | --- | --- | --- |
{curve}

| case | overlap, % | nearest action | gain |
| --- | --- | --- | --- |
{cases}
"""

_LEFT_OUT = """
## Each metric, for a profile of the others

`make bench-leave-one-out` trains on all actions of kbench except the cases of one metric and the
mixes with it, and measures those cases ([gains](leave-one-out.md)). The overlap is that with the
actions that were left.

| | cases | gain without it | gain with it |
| --- | --- | --- | --- |
{means}

| case | | overlap, % | nearest action | gain without it | gain with it |
| --- | --- | --- | --- | --- | --- |
{rows}
"""


if __name__ == "__main__":
    main()
