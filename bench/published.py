"""The comparisons that others have published, repeated here beside their figures.

    bench/published.py [--store DIR] [TABLE…]

Runs the programs of bench/published/ (hours on two cores when the store is empty), and writes
docs/benchmarks/published.json and .md from their reports after each of them. Tables that are not
named keep the results that they have there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure.left import METRICS, Left, fewer, geometric, left_percent
from measure.program import compiler, ran

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "bench" / "published"
RESULT = ROOT / "docs" / "benchmarks" / "published"
GOOGLE = "Xu and Shen, *Optimizing the Linux Kernel using AutoFDO & Propeller*"
YUAN = "Yuan et al., *Device-Specific Linux Kernel Optimization for Android Smartphones*"


@dataclass(frozen=True)
class Table:
    """A published comparison.

    Attributes:
        source: where it was published.
        title: its heading here.
        figure: what the publication compares, and how it is computed here.
        metric: of the report, whose geometric mean over the cases is that figure.
        cases: how the names of the cases begin that count.
        inverse: the figure is a rate, of which more is better; the metric is its inverse.
        published: the publication's figures in percent, by image.
        differs: what differs between theirs and ours.
    """

    source: str
    title: str
    figure: str
    metric: str
    published: Mapping[str, str]
    differs: str
    cases: str = ""
    inverse: bool = False


_LOAD = (
    "Theirs ran neper on servers, for minutes, and this is a load like it in an emulated guest of "
    "one machine. Its clock follows the instructions that are executed, so neither caches nor "
    "mispredictions are in the figure; the last columns model them."
)
_INDEX = (
    "Theirs is the index of UnixBench on servers, on one processor and on 112; ours is that of "
    "loads like it in an emulated guest, whose clock follows the instructions."
)
TABLES: Mapping[str, Table] = {
    "tcp-rr": Table(
        source=GOOGLE,
        title="tcp_rr",
        figure="latency: geometric mean of P1, P50, P99 and mean, percent shorter",
        metric="latency",
        published={"autofdo": "10.6", "pgo": "11.8"},
        differs=_LOAD,
        cases="rr-",
    ),
    "tcp-stream": Table(
        source=GOOGLE,
        title="tcp_stream",
        figure="throughput, percent more",
        metric="time_per_byte",
        published={"autofdo": "6.1", "pgo": "6.7"},
        differs=_LOAD,
        cases="stream-",
        inverse=True,
    ),
    "unixbench-1": Table(
        source=GOOGLE,
        title="UnixBench, one copy",
        figure="index, percent higher",
        metric="guest_time",
        published={"autofdo": "2.2", "pgo": "3.0"},
        differs=_INDEX,
        inverse=True,
    ),
    "unixbench-4": Table(
        source=GOOGLE,
        title="UnixBench, a copy for each processor",
        figure="index, percent higher",
        metric="guest_time",
        published={"autofdo": "2.6", "pgo": "2.6"},
        differs=f"{_INDEX} Four emulated processors take turns, so nothing waits for a lock "
        "that another one holds at that moment.",
        inverse=True,
    ),
    "options": Table(
        source=YUAN,
        title="Options, normalised to -O2",
        figure="operations per second of guest time in `threads`, `binder` and `sqlite`, percent "
        "more",
        metric="guest_time",
        published={"os": "-5 to -1.5", "o3": "0.8 to 2.5", "pgo": "4.1 to 11.1"},
        differs="Theirs is GCC 5 and 6 on three phones of 2013 to 2015, by benchmarks of their "
        "own that last long enough to wait for flash memory; ours is Clang on x86-64 in an "
        "emulator, whose clock follows the instructions and whose disk does not wait.",
        inverse=True,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("table", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.table) - set(TABLES):
        parser.error(f"there is no table {min(unknown)}: choose of {', '.join(TABLES)}")
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    for name in arguments.table or TABLES:
        out = ROOT / "out" / "published" / name
        results[name] = summary(ran(PROGRAMS / f"{name}.g4", out, arguments.store), TABLES[name])
        record.write_text(json.dumps(results, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(results))


def summary(report: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """What is kept of a report: costs in percent of the plain kernel's, in the cases that count."""
    left = left_percent(report, {table.metric, *METRICS})
    return {
        "kernel": report["provenance"]["kernel"],
        "compiler": compiler(report["provenance"]),
        "text_bytes": {i["name"]: i["size_bytes"]["text"] for i in report["images"]},
        "left_percent": {
            image: {
                metric: {c: v for c, v in by_case.items() if c.startswith(table.cases)}
                for metric, by_case in by.items()
            }
            for image, by in left.items()
        },
    }


def better(left: float, inverse: bool) -> float:
    """By how many percent a figure is better, if its cost is so many percent of the plain one."""
    return 100 * (100 / left - 1) if inverse else 100 - left


def page(results: Mapping[str, Any]) -> str:
    """Markdown of the tables that have been made."""
    return _PAGE + "\n".join(
        _section(table, results[name]) for name, table in TABLES.items() if name in results
    )


def _section(table: Table, result: Mapping[str, Any]) -> str:
    left: Left = result["left_percent"]
    plain = result["text_bytes"]["plain"]
    rows = []
    for image, by in left.items():
        figure = better(geometric(by[table.metric]), table.inverse)
        cells = [
            image,
            table.published.get(image, ""),
            f"{figure:.1f}",
            *(fewer(by.get(metric)) for metric in METRICS),
            f"{100 * (result['text_bytes'][image] / plain - 1):+.1f}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return _SECTION.format(
        title=table.title,
        source=table.source,
        figure=table.figure,
        kernel=result["kernel"],
        compiler=result["compiler"],
        titles=" | ".join(METRICS.values()),
        lines="|---" * (len(METRICS) + 4) + "|",
        rows="\n".join(rows),
        cases=", ".join(f"`{case}`" for case in next(iter(left.values()))[table.metric]),
        differs=table.differs,
    )


_PAGE = """# Published comparisons, repeated

`make bench-published` writes this page from the programs of `bench/published/`.

Each kernel is trained with the work that is measured, as in the publications. *Published* and
*here* are in percent better than the plain kernel, here *modelled*: by the guest's clock. The
other columns are percent fewer than in the plain kernel: instructions and taken branches of the
kernel are *counted*, cycles and misses are *modelled* ([the emulated PMU](../pmu.md)) on the core
`skylake`; the last is the growth of the text in percent. Means are geometric, over the cases named
below each table.

"""

_SECTION = """## {title}

{source}: {figure}.

| image | published | here | {titles} | text |
{lines}
{rows}

{kernel}, {compiler}; cases {cases}.

{differs}
"""


if __name__ == "__main__":
    main()
