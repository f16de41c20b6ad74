"""How much of what the suites execute in the kernel `general` executes too.

    bench/general.py [--arch x86-64|arm64] [--store DIR] [--dry-run]

Boots an instrumented kernel once for each app and resets its counters before each action and each
case. The kernel is the one that examples/general.g4 trains, with the configuration `suites`; a
store without it builds it. Writes docs/benchmarks/general.json and .md; an architecture that did
not run keeps its results there.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measure.executed import CountingKernel, Counts

from mepof.kernel.description import BuildDescription
from mepof.plan.store import default_store
from mepof.suite.cases import load_suite, suite_names
from mepof.toolchain.named import select

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "general"
# kbench is compared with general: it is what a program trains on by default.
TRAINING = ("general", "kbench")
MAX_MISSED = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arch", choices=("x86-64", "arm64"), default="x86-64")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    arch = arguments.arch
    suites = [s for s in suite_names() if arch in (load_suite(s).architectures or (arch,))]
    apps = (*TRAINING, *suites)
    kernel = CountingKernel(arch, apps, arguments.store or default_store())
    if arguments.dry_run:
        print(f"runs: {', '.join(kernel.missing()) or 'nothing'}; boots: {len(apps)}")
        return
    with TemporaryDirectory() as scratch:
        build = BuildDescription.read(kernel.make(Path(scratch) / "run"))
        counted = {app: kernel.counts(app, Path(scratch) / app) for app in apps}
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    results[arch] = {
        "kernel": f"Linux {build.version}",
        "clang": select("clang").identity()["clang"],
        **summary(
            {app: counted[app] for app in TRAINING},
            {suite: counted[suite] for suite in suites},
        ),
    }
    record.write_text(json.dumps(results, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(results))


def summary(
    training: Mapping[str, Mapping[str, Counts]], suites: Mapping[str, Mapping[str, Counts]]
) -> dict[str, Any]:
    """What the apps for training cover of the suites.

    Args:
        training: for each app what its actions execute; `general` first.
        suites: for each suite what its cases execute.
    """
    trained = {app: _sum(actions.values()) for app, actions in training.items()}
    cases = {f"{s}/{c}": counts for s, by_case in suites.items() for c, counts in by_case.items()}
    return {
        "training": {app: _weights(actions, trained[app]) for app, actions in training.items()},
        "all": _covered(_sum(cases.values()), trained),
        "suites": {s: _covered(_sum(by_case.values()), trained) for s, by_case in suites.items()},
        "missed": _missed(cases, next(iter(trained.values()))),
    }


def _sum(counts: Iterable[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _weights(actions: Mapping[str, Counts], total: Counts) -> dict[str, Any]:
    """How evenly an app's counts are distributed: its heaviest action and function, in percent."""
    by_action = {name: sum(counts.values()) for name, counts in actions.items()}
    every = sum(by_action.values())
    action = max(by_action, key=lambda name: by_action[name])
    function = max(total, key=lambda name: total[name])
    return {
        "actions": len(actions),
        "functions": len(total),
        "action": {"name": action, "percent": 100 * by_action[action] / every},
        "function": {"name": function, "percent": 100 * total[function] / every},
    }


def _covered(counts: Counts, trained: Mapping[str, Counts]) -> dict[str, Any]:
    """The share of a suite's functions, and of its counts, that each app has too."""
    both = {app: counts.keys() & functions.keys() for app, functions in trained.items()}
    every = sum(counts.values())
    return {
        "functions": len(counts),
        "functions_percent": {app: 100 * len(found) / len(counts) for app, found in both.items()},
        "counts_percent": {
            app: 100 * sum(counts[name] for name in found) / every for app, found in both.items()
        },
    }


def _missed(cases: Mapping[str, Counts], trained: Counts) -> list[dict[str, Any]]:
    """The functions that were not trained and weigh most in a case, each with that case."""
    heaviest: dict[str, tuple[float, str]] = {}
    for case, counts in cases.items():
        every = sum(counts.values())
        for name in counts.keys() - trained.keys():
            heaviest[name] = max(heaviest.get(name, (0.0, "")), (100 * counts[name] / every, case))
    ordered = sorted(heaviest.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        {"function": name, "case": case, "percent": percent}
        for name, (percent, case) in ordered[:MAX_MISSED]
    ]


def page(results: Mapping[str, Any]) -> str:
    """The results as a page."""
    return _PAGE + "".join(_section(arch, results[arch]) for arch in sorted(results, reverse=True))


def _section(arch: str, result: Mapping[str, Any]) -> str:
    weights = result["training"]["general"]
    rows = [("all", result["all"]), *((f"`{s}`", of) for s, of in result["suites"].items())]
    return _SECTION.format(
        arch=arch,
        kernel=result["kernel"],
        clang=result["clang"],
        rows="\n".join(_row(name, of) for name, of in rows),
        functions=weights["functions"],
        actions=weights["actions"],
        action=weights["action"],
        function=weights["function"],
        missed="\n".join(
            f"| `{each['function']}` | `{each['case']}` | {each['percent']:.3f} |"
            for each in result["missed"]
        ),
    )


def _row(name: str, of: Mapping[str, Any]) -> str:
    shares = [
        f"{of[key][app]:.{digits}f}"
        for key, digits in (("functions_percent", 1), ("counts_percent", 2))
        for app in TRAINING
    ]
    return f"| {name} | {of['functions']:,} | {' | '.join(shares)} |"


_PAGE = """# What general covers of the suites

`make bench-general` writes this page: it counts on the instrumented kernel of the configuration
`suites`, whose counters it resets before each action of [`general`](../general.md) and `kbench` and
before each case of a [suite](../suites.md). Reading the counters is part of what is counted, for
all alike.

- *functions*: those that a suite's cases execute, and the share of them, in percent, that the app
  executes too;
- *counts*: the share of the suite's block counts that lies in these functions.
"""

_SECTION = """
## {arch}

{kernel}, {clang}

| suite | functions | by `general` | by `kbench` | counts in those of `general` | in those of `kbench` |
| --- | --- | --- | --- | --- | --- |
{rows}

`general` executes {functions:,} functions in {actions} actions. The heaviest action,
`{action[name]}`, has {action[percent]:.1f} % of its counts, and the heaviest function,
`{function[name]}`, {function[percent]:.1f} %.

The functions that `general` does not execute and that weigh most in a case:

| function | case | of the case's counts, % |
| --- | --- | --- |
{missed}
"""  # noqa: E501 - a row of a table


if __name__ == "__main__":
    main()
