"""What a profile of kbench alone does for every suite: examples/suites.g4, summed up by suite.

    bench/suites.py [--store DIR] [--report DIR]

Runs the program (three kernels, then boots of minutes), or takes the results of a run of it from
``--report``. Writes docs/benchmarks/suites.json and .md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "examples" / "suites.g4"
OUT = ROOT / "out" / "suites"
RESULT = ROOT / "docs" / "benchmarks" / "suites"
METRICS = {
    "kernel_instructions": "kernel instructions",
    "kernel_taken_branches": "taken kernel branches",
    "guest_time": "guest time, *modelled*",
}
IMAGE = "opt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    if arguments.report is None:
        mepof = Path(sys.executable).parent / "mepof"
        command: list[str | Path] = [mepof, "run", PROGRAM, "--out", OUT]
        if arguments.store is not None:
            command += ["--store", arguments.store]
        if (status := subprocess.run(command, check=False).returncode) != 0:
            sys.exit(status)  # it has said why
    report = (arguments.report or OUT) / "report.json"
    result = summary(json.loads(report.read_text(encoding="utf-8")))
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(result))


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a report: improvements in percent by suite, case and metric."""
    suites: dict[str, dict[str, dict[str, float]]] = {}
    slower: list[str] = []
    for row in report["cases"]:
        if row["image"] != IMAGE or row["metric"] not in METRICS:
            continue
        if row["improvement_percent"] is None:
            continue
        cases = suites.setdefault(row["suite"], {})
        cases.setdefault(row["case"], {})[row["metric"]] = row["improvement_percent"]
        if row["metric"] == "kernel_instructions" and row["verdict"] == "slower":
            slower.append(f"{row['suite']}/{row['case']}")
    return {
        "command": "bench/suites.py",
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "suites": suites,
        "slower": slower,
        "by_training": [
            {key: row[key] for key in ("trained", "metric", "cases", _MEAN, "interval_percent")}
            for row in report["by_training"]
            if row["image"] == IMAGE and row["metric"] in METRICS
        ],
    }


_MEAN = "geomean_improvement_percent"


def _mean(percents: Sequence[float]) -> str:
    """The geometric mean of improvements in percent."""
    if not percents:
        return "none"
    return f"{100 * (exp(fmean(log(1 + one / 100) for one in percents)) - 1):+.1f}"


def page(result: dict[str, Any]) -> str:
    """The results as a page."""
    return _PAGE.format(
        kernel=result["kernel"],
        clang=result["tools"]["clang"],
        titles=" | ".join(METRICS.values()),
        lines="| --- " * (len(METRICS) + 2) + "|",
        training="\n".join(_training(result["by_training"])),
        suites="\n".join(_suites(result["suites"])),
        slower="\n".join(_slower(result)),
    )


def _training(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for trained in (True, False):
        found = {row["metric"]: row for row in rows if row["trained"] is trained}
        cases = found["kernel_instructions"]["cases"]
        told = " | ".join(f"{found[metric][_MEAN]:+.1f}" for metric in METRICS)
        yield f"| {'' if trained else 'not '}trained | {cases} | {told} |"


def _suites(suites: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    for suite, cases in sorted(suites.items()):
        means = (_mean([by[metric] for by in cases.values() if metric in by]) for metric in METRICS)
        yield f"| [`{suite}`](../suites/{suite}.md) | {len(cases)} | {' | '.join(means)} |"


def _slower(result: dict[str, Any]) -> Iterator[str]:
    for name in result["slower"]:
        suite, _, case = name.partition("/")
        yield f"- `{name}`: {result['suites'][suite][case]['kernel_instructions']:+.1f} %"


_PAGE = """# Every suite, for a profile of kbench

Command: `make bench-suites`, which runs [examples/suites.g4](../../examples/suites.g4). Written by
it.

{kernel}, {clang}.

The kernel is trained by `rand kbench` alone, which does the work of the suite `mepof`, and measured
on all of them. Improvement over the plain kernel in percent (baseline / cost - 1), geometric means
over the cases that do such work at all; instructions and branches are counted.

| | cases | {titles} |
{lines}
{training}

| suite | cases | {titles} |
{lines}
{suites}

Beyond chance, these cases take more kernel instructions with the profile than without it. Code that
no training ran is cold to the compiler, which makes it small rather than fast.

{slower}
"""


if __name__ == "__main__":
    main()
