"""Every algorithm on the same kernel: what each brings, side by side.

    bench/algorithms.py [--store DIR]

Runs bench/algorithms.g4 (hours on two cores when nothing is in the store; again in seconds), and
writes docs/benchmarks/algorithms.json and .md from its report.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "bench" / "algorithms.g4"
OUT = ROOT / "out" / "algorithms"
RESULT = ROOT / "docs" / "benchmarks" / "algorithms"
METRICS = {"kernel_instructions": "kernel instructions", "kernel_taken_branches": "taken branches"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    mepof = Path(sys.executable).parent / "mepof"
    command: list[str | Path] = [mepof, "run", PROGRAM, "--out", OUT]
    if arguments.store is not None:
        command += ["--store", arguments.store]
    subprocess.run(command, check=True)
    report = json.loads((OUT / "report.json").read_text(encoding="utf-8"))
    result = summary(report)
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(result))


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """What is left of each image's costs, in percent of the plain kernel's, by metric and case."""
    left: dict[str, dict[str, dict[str, float]]] = {}
    for row in report["cases"]:
        if row["metric"] in METRICS and row["image"] != report["baseline"]:
            by_case = left.setdefault(row["image"], {}).setdefault(row["metric"], {})
            by_case[row["case"]] = 100 * row["value"] / row["baseline"]
    return {
        "command": "make bench-algorithms",
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "program": report["provenance"]["program"],
        "text_bytes": {i["name"]: i["size_bytes"]["text"] for i in report["images"]},
        "left_percent": left,
    }


def geometric(values: dict[str, float]) -> float:
    """The geometric mean over the cases."""
    return exp(fmean(map(log, values.values())))


def page(result: dict[str, Any]) -> str:
    """Markdown of the comparison."""
    left = result["left_percent"]
    text = result["text_bytes"]
    plain = text["plain"]
    rows = [
        f"| {name} | "
        + " | ".join(f"{100 - geometric(by[metric]):.2f}" for metric in METRICS)
        + f" | {100 * (text[name] / plain - 1):+.1f} |"
        for name, by in left.items()
    ]
    return _PAGE.format(
        kernel=result["kernel"],
        clang=result["tools"]["clang"],
        rows="\n".join(rows),
        claims="\n".join(_claims(left)),
        cases="\n\n".join(_by_case(metric, left) for metric in METRICS),
    )


def _claims(left: dict[str, Any]) -> list[str]:
    fewer = {
        name: {metric: 100 - geometric(by[metric]) for metric in METRICS}
        for name, by in left.items()
    }
    instructions = {name: by["kernel_instructions"] for name, by in fewer.items()}
    kept = 100 * instructions["autofdo"] / instructions["pgo"]
    claims = [f"- `autofdo` keeps {kept:.0f} % of what `pgo` saves in kernel instructions."]
    for below in ("autofdo", "pgo"):
        before, after = (
            geometric(left[name]["kernel_taken_branches"]) for name in (below, f"{below}-propeller")
        )
        claims.append(
            f"- Propeller leaves {100 * after / before:.1f} % of the taken kernel branches of "
            f"`{below}`: {100 - 100 * after / before:.1f} % fewer."
        )
    return claims


def _by_case(metric: str, left: dict[str, Any]) -> str:
    names = list(left)
    cases = list(left[names[0]][metric])
    rows = [
        f"| {case} | "
        + " | ".join(f"{100 - left[name][metric][case]:.2f}" for name in names)
        + " |"
        for case in cases
    ]
    return "\n".join(
        [
            f"Fewer {METRICS[metric]}, in percent:\n",
            f"| case | {' | '.join(names)} |",
            "|---" * (len(names) + 1) + "|",
            *rows,
        ]
    )


_PAGE = """# The algorithms side by side

Command: `make bench-algorithms`, which runs `bench/algorithms.g4`. Written by it.

Linux {kernel}, configuration `slim`, {clang}. Each algorithm is trained by the same 24 actions of
`rand kbench`; the cases are those of the suite `mepof`. Everything is counted in the emulator, so
the numbers repeat: kernel instructions, and taken branches of the kernel. Percent of the plain
kernel's that are saved, geometric mean over the cases, and the growth of the text:

| image | fewer kernel instructions, % | fewer taken branches, % | text, % |
|---|---|---|---|
{rows}

{claims}

An emulator has no caches and predicts nothing: what Propeller and hot/cold splitting gain there
does not show in these two counts.

## By case

{cases}
"""


if __name__ == "__main__":
    main()
