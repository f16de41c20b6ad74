"""What a profile does for untrained work: training on all cases except one, and on all of them.

    bench/leave_one_out.py [--suite NAME …] [--by case|metric|suite] [--apps NAME;…]
                           [--source KERNEL] [--write] [--store DIR]

For every case (or metric, or whole suite) the kernel is trained on everything else that the apps
do, and those cases are measured beside the kernel that was trained on all. Each training is another
build: hours. With ``--write`` it prints the program and runs nothing. Writes
docs/benchmarks/leave-one-out.json and .md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from measure.program import ran

from mepof.suite.cases import Case, load_suite

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "leave-one-out"
RESULT = ROOT / "docs" / "benchmarks" / "leave-one-out"
METRIC = "kernel_instructions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", nargs="+", default=["mepof"])
    parser.add_argument("--apps", default="kbench")
    parser.add_argument("--source", default="debian:linux-source-6.12")
    parser.add_argument("--by", choices=("case", "metric", "suite"), default="case")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    cases = tuple(case for name in arguments.suite for case in load_suite(name).cases)
    left_out = list(dict.fromkeys(_part(case, arguments.by) for case in cases))
    metrics = list(dict.fromkeys(case.metric for case in cases))
    text = program(f"{arguments.source} pgo trav {arguments.apps} O2", left_out, metrics)
    if arguments.write:
        print(text, end="")
        return
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "program.g4").write_text(text)
    report = ran(OUT / "program.g4", OUT, arguments.store)
    suites = " ".join(arguments.suite)
    result = {
        "command": f"bench/leave_one_out.py --suite {suites} --by {arguments.by}",
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        # Of functions that never ran; results of before this was the default lack it.
        "unexecuted": "unknown",
        "rows": compared(report, cases, arguments.by),
    }
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(result))


def _part(case: Case, by: str) -> str:
    return {"case": case.name, "metric": case.metric, "suite": case.suite}[by]


def program(operands: str, left_out: list[str], metrics: list[str]) -> str:
    """The program that trains on everything, and on everything except each part in turn."""
    lines = ["set name all.", f"opt {operands}."]
    for part in left_out:
        lines += [
            f"set without {part}.",
            f"set name without-{part}.",
            f"opt {operands}.",
        ]
    images = ["plain", "all", *(f"without-{part}" for part in left_out)]
    lines += [f"eval {';'.join(images)} {';'.join(metrics)}."]
    return "\n".join(lines) + "\n"


def compared(report: dict[str, Any], cases: tuple[Case, ...], by: str) -> list[dict[str, Any]]:
    """For every case its gain with training on all, and without it."""
    gains = {(row["image"], row["case"]): row for row in report["cases"] if row["metric"] == METRIC}
    return [
        {
            "case": case.name,
            "trained_percent": gains["all", case.name]["improvement_percent"],
            "left_out_percent": gains[without, case.name]["improvement_percent"],
            "interval_percent": gains[without, case.name]["interval_percent"],
            "verdict": gains[without, case.name]["verdict"],
        }
        for case in cases
        if (without := f"without-{_part(case, by)}")
    ]


def page(result: dict[str, Any]) -> str:
    """Markdown of the comparison."""
    rows = "\n".join(
        f"| {r['case']} | {r['trained_percent']:+.2f} | {r['left_out_percent']:+.2f} "
        f"| {r['interval_percent'][0]:+.2f} to {r['interval_percent'][1]:+.2f} | {r['verdict']} |"
        for r in result["rows"]
    )
    trained, left_out = (
        fmean(r[key] for r in result["rows"]) for key in ("trained_percent", "left_out_percent")
    )
    return _PAGE.format(
        command=result["command"],
        kernel=result["kernel"],
        clang=result["tools"]["clang"],
        rows=rows,
        trained=trained,
        left_out=left_out,
        when="" if "unexecuted" in result else _EARLIER,
    )


_EARLIER = """ Measured when functions that never ran still counted as cold;
[by default they are unknown](../decisions/0023-unknown-not-cold.md) now."""

_PAGE = """# Gains on untrained work

`{command}` on {kernel} with {clang}.

Kernel instructions against the plain kernel, baseline / cost - 1 in percent, of a kernel that was
trained on all actions of its apps, and of one whose training ran neither the case nor any mix with
it.{when}

| case | trained on it | left out | 95 % interval | verdict |
| --- | --- | --- | --- | --- |
{rows}
| mean | {trained:+.2f} | {left_out:+.2f} | | |
"""

if __name__ == "__main__":
    main()
