"""What a profile of a part of the kernel keeps of the gain: by the share that is instrumented.

    bench/selective.py [--store DIR] [--write] [ALGORITHM…]

The same kernel and training, with the hottest files instrumented that make up so many percent of
what runs, with all that runs, and with as many as an image has room for. Each point compiles the
files that it instruments, and those again with their profile; all else is shared. With ``--write``
it prints the programs and runs nothing. Writes docs/benchmarks/selective.json and .md after each
algorithm; those that are not named keep the results that they have there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from measure.left import geometric, left_percent
from measure.program import ran

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "selective"
RESULT = ROOT / "docs" / "benchmarks" / "selective"
METRIC = "kernel_instructions"
SOURCE = "debian:linux-source-6.12"
#: What is instrumented, by the name of the image: the values of `set instrument`.
POINTS = {
    **{f"hottest-{percent}": f"{percent}%" for percent in (50, 80, 90, 95, 99)},
    "all": "**",
}
#: The toolchain of each algorithm.
ALGORITHMS = {"pgo": "clang", "gcc-pgo": "gcc"}
#: The size of an image that the one with all counters exceeds.
LIMIT = "within-4M", "**,4M"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("algorithm", nargs="*", metavar="ALGORITHM", default=["pgo"])
    arguments = parser.parse_args()
    if unknown := set(arguments.algorithm) - set(ALGORITHMS):
        parser.error(f"there is no {sorted(unknown)[0]}: choose of {', '.join(ALGORITHMS)}")
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    for algorithm in arguments.algorithm:
        text = program(algorithm)
        if arguments.write:
            print(text, end="")
            continue
        out = OUT / algorithm
        out.mkdir(parents=True, exist_ok=True)
        (out / "program.g4").write_text(text, encoding="utf-8")
        report = ran(out / "program.g4", out, arguments.store)
        results[algorithm] = summary(report)
        record.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        RESULT.with_suffix(".md").write_text(page(results), encoding="utf-8")


def points(algorithm: str) -> dict[str, str]:
    """What is instrumented, by the name of the image."""
    return {**POINTS, **({LIMIT[0]: LIMIT[1]} if algorithm == "pgo" else {})}


def program(algorithm: str) -> str:
    """The program that profiles the same kernel once for each point."""
    lines = ["set config slim.", "set seed 1.", "set repetitions 1."]
    if ALGORITHMS[algorithm] != "clang":
        lines.append(f"set toolchain {ALGORITHMS[algorithm]}.")
    for name, value in points(algorithm).items():
        lines += [
            f"set instrument {value}.",
            f"set name {name}.",
            f"opt {SOURCE} {algorithm} rand kbench O2.",
        ]
    lines.append(f"eval {';'.join(['plain', *points(algorithm)])}.")
    return "\n".join(lines) + "\n"


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Of each point, what was instrumented, and what the image with its profile gains."""
    left = left_percent(report, (METRIC,))
    known = {each["name"]: each for each in report["profiles"]}
    whole = 100 - geometric(left["all"][METRIC])
    rows = {}
    for name in left:
        gain = 100 - geometric(left[name][METRIC])
        rows[name] = {
            **known[name]["instrumented"],
            "functions": known[name]["functions"],
            "fewer_percent": round(gain, 2),
            "kept_percent": round(100 * gain / whole, 1),
        }
    return {
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "program": report["provenance"]["program"],
        "rows": rows,
    }


def page(results: dict[str, Any]) -> str:
    """Markdown of the curves."""
    return _PAGE + "\n".join(
        _section(name, results[name]) for name in ALGORITHMS if name in results
    )


def _section(algorithm: str, result: dict[str, Any]) -> str:
    compiler = ALGORITHMS[algorithm]
    return _SECTION.format(
        algorithm=algorithm,
        kernel=result["kernel"],
        compiler=result["tools"][compiler],
        rows="\n".join(_row(name, row) for name, row in result["rows"].items()),
        claim=_claim(result["rows"]),
    )


def _row(name: str, row: dict[str, Any]) -> str:
    return (
        f"| {_title(name)} | {row['files']} of {row['of_files']} | {row['text_percent']:.1f} "
        f"| {row['time_percent']:.1f} | {row['image_bytes']:,} | {row['growth_percent']:+.1f} "
        f"| {row['fewer_percent']:.2f} | {row['kept_percent']:.1f} |"
    )


def _title(name: str) -> str:
    kind, _, value = name.partition("-")
    return {"hottest": f"hottest {value} %", "within": f"image within {value[:-1]} MiB"}.get(
        kind, "all that runs"
    )


def _claim(rows: dict[str, Any]) -> str:
    """The least that is instrumented for nine tenths of the gain."""
    enough = [each for each in rows.values() if each["kept_percent"] >= 90]
    least = min(enough, key=lambda each: float(each["text_percent"]))
    return (
        f"{least['kept_percent']:.1f} % of the gain is kept with {least['text_percent']:.1f} % of "
        f"the text instrumented, in {least['files']} files."
    )


_PAGE = """# What selective instrumentation keeps of the gain

`make bench-selective` writes this page: Debian's Linux 6.12, x86-64, configuration `slim`, trained
with the same 24 actions of `rand kbench`, and [instrumented in part](../selective.md).

- *text*: the share of the kernel's code that is in instrumented files, in percent;
- *work*: the share of the code that the training executes, before anything is instrumented, that
  it executes in these files, in percent;
- *image*: bytes of the instrumented image, and by how many percent it is larger than the plain one;
- *fewer*: kernel instructions (*counted*) that the image with the profile executes less than the
  plain one, in percent, geometric mean of the eight cases of the suite `mepof`;
- *kept*: that, in percent of what the profile of all that runs gains.

"""

_SECTION = """## `{algorithm}`

{kernel}, {compiler}

| instrumented | files | text | work | image | larger | fewer | kept |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

{claim}
"""


if __name__ == "__main__":
    main()
