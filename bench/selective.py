"""What a profile of a part of the kernel keeps of the gain: by the share that is instrumented.

    bench/selective.py [--store DIR] [--write] [--again] [--point NAME]… [ALGORITHM…]

The same kernel and training, with the hottest files instrumented that make up so many percent of
what runs, with all that runs, and with as many as an image has room for. Each point compiles the
files that it instruments, and those again with their profile; all else is shared. With ``--write``
it prints the programs and runs nothing. Writes docs/benchmarks/selective.json and .md after each
point, and continues where it stopped; what is not named keeps the results that it has there.
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
#: A size between those of the plain image and of the one with all counters.
LIMIT = "within-3400K", "**,3400K"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure points that are known, too")
    parser.add_argument("--point", action="append", help="measure this one only; may be repeated")
    parser.add_argument("algorithm", nargs="*", metavar="ALGORITHM", default=["pgo"])
    arguments = parser.parse_args()
    if unknown := set(arguments.algorithm) - set(ALGORITHMS):
        parser.error(f"there is no {sorted(unknown)[0]}: choose of {', '.join(ALGORITHMS)}")
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    for algorithm in arguments.algorithm:
        known = points(algorithm)
        if missing := set(arguments.point or ()) - set(known):
            parser.error(f"{algorithm} has no {sorted(missing)[0]}: choose of {', '.join(known)}")
        rows = results.get(algorithm, {}).get("rows", {})
        for name in arguments.point or known:
            if name in rows and not (arguments.again or arguments.write):
                continue
            value = known[name]
            text = program(algorithm, name, value)
            if arguments.write:
                print(text)
                continue
            out = OUT / algorithm / name
            out.mkdir(parents=True, exist_ok=True)
            (out / "program.g4").write_text(text, encoding="utf-8")
            report = ran(out / "program.g4", out, arguments.store)
            rows[name] = row(report)
            rows = {each: rows[each] for each in known if each in rows}
            about = report["provenance"]
            results[algorithm] = {"kernel": about["kernel"], "tools": about["tools"], "rows": rows}
            record.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            RESULT.with_suffix(".md").write_text(page(results), encoding="utf-8")


def points(algorithm: str) -> dict[str, str]:
    """What is instrumented, by the name of the image."""
    return {**POINTS, **({LIMIT[0]: LIMIT[1]} if algorithm == "pgo" else {})}


def program(algorithm: str, name: str, value: str) -> str:
    """The program of a point."""
    return f"""\
set config slim.
set seed 1.
set repetitions 1.
set toolchain {ALGORITHMS[algorithm]}.
set instrument {value}.
set name {name}.
opt {SOURCE} {algorithm} rand kbench O2.
eval plain;{name}.
"""


def row(report: dict[str, Any]) -> dict[str, Any]:
    """What was instrumented, and what the image with the profile gains."""
    (profile,) = report["profiles"]
    (left,) = left_percent(report, (METRIC,)).values()
    return {
        **profile["instrumented"],
        "functions": profile["functions"],
        "fewer_percent": 100 - geometric(left[METRIC]),
    }


def page(results: dict[str, Any]) -> str:
    """Markdown of the curves."""
    return _PAGE + "\n".join(
        _section(name, results[name]) for name in ALGORITHMS if name in results
    )


def _section(algorithm: str, result: dict[str, Any]) -> str:
    rows = result["rows"]
    whole = rows["all"]["fewer_percent"] if "all" in rows else None
    return _SECTION.format(
        algorithm=algorithm,
        kernel=result["kernel"],
        compiler=result["tools"][ALGORITHMS[algorithm]],
        rows="\n".join(_row(name, each, whole) for name, each in rows.items()),
        claim="" if whole is None else _claim(rows, whole),
    )


def _row(name: str, row: dict[str, Any], whole: float | None) -> str:
    kept = f"{100 * row['fewer_percent'] / whole:.1f}" if whole else "not known yet"
    return (
        f"| {_title(name)} | {row['files']} of {row['of_files']} | {row['text_percent']:.1f} "
        f"| {row['time_percent']:.1f} | {row['image_bytes']:,} | {row['growth_percent']:+.1f} "
        f"| {row['fewer_percent']:.2f} | {kept} |"
    )


def _title(name: str) -> str:
    kind, _, value = name.partition("-")
    if kind == "hottest":
        return f"hottest {value} %"
    return f"image within {value[:-1]} {value[-1]}iB" if kind == "within" else "all that runs"


def _claim(rows: dict[str, Any], whole: float) -> str:
    """The least that is instrumented for nine tenths of the gain."""
    enough = [each for each in rows.values() if each["fewer_percent"] >= 0.9 * whole]
    least = min(enough, key=lambda each: float(each["text_percent"]))
    return (
        f"{100 * least['fewer_percent'] / whole:.1f} % of the gain is kept with "
        f"{least['text_percent']:.1f} % of the text instrumented, in {least['files']} files.\n"
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

{claim}"""


if __name__ == "__main__":
    main()
