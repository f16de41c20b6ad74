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
from fnmatch import fnmatchcase
from pathlib import Path
from textwrap import fill
from typing import Any

from measure.heatmaps import drawn
from measure.left import COUNTED, METRICS, Left, fewer, geometric, left_percent
from measure.program import compiler, ran
from pydantic import Field

from mepof.described import Described, read_described
from mepof.errors import InputError

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "bench" / "published"
TABLES_FILE = PROGRAMS.with_suffix(".toml")
RESULT = ROOT / "docs" / "benchmarks" / "published"
IMAGES = ROOT / "docs" / "images"


class Publication(Described):
    """A publication.

    Attributes:
        title: its authors and title.
        names: what it calls our images, where it has other names for them.
    """

    title: str
    names: dict[str, str] = Field(default_factory=dict)


class Table(Described):
    """A published comparison.

    Attributes:
        publication: where it was published, by its key.
        title: its heading here.
        figure: what the publication compares, and how it is computed here.
        metric: of the report, whose geometric mean over the cases is that figure.
        inverse: the figure is a rate, of which more is better; the metric is its inverse.
        published: the publication's figures in percent, by image.
        groups: the cases that count, as patterns of their names; the figure is the geometric mean
            of those of the groups.
        heatmaps: the images whose heatmaps the publication shows.
        differs: what differs between theirs and ours.
    """

    publication: str
    title: str
    figure: str
    metric: str
    inverse: bool = False
    published: dict[str, str]
    groups: dict[str, tuple[str, ...]] = Field(default={"all": ("*",)})
    heatmaps: tuple[str, ...] = ()
    differs: str

    def cases(self, group: str, known: Mapping[str, float]) -> dict[str, float]:
        """What is known of the cases of a group."""
        patterns = self.groups[group]
        return {c: v for c, v in known.items() if any(fnmatchcase(c, p) for p in patterns)}

    def counting(self, known: Mapping[str, float]) -> dict[str, float]:
        """What is known of the cases that count, in the order in which they are known."""
        found = [self.cases(group, known) for group in self.groups]
        return {c: v for c, v in known.items() if any(c in each for each in found)}


class _Described(Described):
    publications: dict[str, Publication]
    tables: dict[str, Table]


_FILE = read_described(TABLES_FILE, _Described, "list of tables")
PUBLICATIONS, TABLES = _FILE.publications, _FILE.tables


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
        table, out = TABLES[name], ROOT / "out" / "published" / name
        report = ran(PROGRAMS / f"{name}.g4", out, arguments.store)
        results[name] = summary(report, table)
        record.write_text(json.dumps(results, indent=1) + "\n")
        if table.heatmaps:
            titles = {image: called(table, image) for image in table.heatmaps}
            IMAGES.joinpath(_picture(name)).write_text(drawn(report["heatmaps"], titles))
        RESULT.with_suffix(".md").write_text(page(results))


def summary(report: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """What is kept of a report: costs in percent of the plain kernel's, in the cases that count."""
    left = left_percent(report, {table.metric, *METRICS})
    for group, patterns in table.groups.items():
        if not all(table.cases(group, by[table.metric]) for by in left.values()):
            wanted = ", ".join(patterns)
            raise InputError(f"no case of {group} was measured: {wanted}", f"edit {TABLES_FILE}")
    core = report.get("core")
    return {
        "kernel": report["provenance"]["kernel"],
        "compiler": compiler(report["provenance"]),
        "core": None if core is None else core["name"],
        "heatmap_row_bytes": report["heatmaps"]["row_bytes"] if table.heatmaps else None,
        "text_bytes": {i["name"]: i["size_bytes"]["text"] for i in report["images"]},
        "left_percent": {
            image: {metric: table.counting(by_case) for metric, by_case in by.items()}
            for image, by in left.items()
        },
    }


def called(table: Table, image: str) -> str:
    """An image, with the publication's name for it."""
    name = PUBLICATIONS[table.publication].names.get(image)
    return image if name is None else f"{image} ({name})"


def _picture(name: str) -> str:
    return f"published-{name}.svg"


def better(left: float, inverse: bool) -> float:
    """By how many percent a figure is better, if its cost is so many percent of the plain one."""
    return 100 * (100 / left - 1) if inverse else 100 - left


def page(results: Mapping[str, Any]) -> str:
    """Markdown of the tables that have been made."""
    made = [_section(name, TABLES[name], results[name]) for name in TABLES if name in results]
    missing = ", ".join(f"`{name}`" for name in TABLES if name not in results)
    said = f"\n{_wrapped(f'Not measured yet: {missing}.')}\n" if missing else ""
    return _PAGE + "\n".join(made) + said


def _section(name: str, table: Table, result: Mapping[str, Any]) -> str:
    left: Left = result["left_percent"]
    groups = table.groups if len(table.groups) > 1 else {}
    metrics = METRICS if result["core"] else COUNTED
    plain = result["text_bytes"]["plain"]
    rows = []
    for image, by in left.items():
        means = {group: geometric(table.cases(group, by[table.metric])) for group in table.groups}
        cells = [
            called(table, image),
            table.published.get(image, ""),
            _figure(geometric(means), table),
            *(_figure(means[group], table) for group in groups),
            *(fewer(by.get(metric)) for metric in metrics),
            f"{100 * (result['text_bytes'][image] / plain - 1):+.1f}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    heads = ["image", "published", "here", *groups, *(metrics[m] for m in metrics), "text"]
    core = f"; the core `{result['core']}`" if result["core"] else "; no core is modelled"
    cases = ", ".join(f"`{case}`" for case in next(iter(left.values()))[table.metric])
    return _SECTION.format(
        title=table.title,
        figure=_wrapped(f"{PUBLICATIONS[table.publication].title}: {table.figure}."),
        made=_wrapped(f"{result['kernel']}, {result['compiler']}{core}; cases {cases}."),
        heads=" | ".join(heads),
        lines="|---" * len(heads) + "|",
        rows="\n".join(rows),
        differs=_wrapped(table.differs),
        heatmaps=_heatmaps(name, result["heatmap_row_bytes"]),
    )


def _figure(left: float, table: Table) -> str:
    # Rounded first: what rounds to zero has no sign.
    return f"{round(better(left, table.inverse), 1) + 0.0:.1f}"


def _wrapped(prose: str) -> str:
    return fill(prose, 100, break_long_words=False, break_on_hyphens=False)


def _heatmaps(name: str, row_bytes: int | None) -> str:
    return "" if row_bytes is None else _HEATMAPS.format(bytes=row_bytes, picture=_picture(name))


_PAGE = """# Published comparisons, repeated

`make bench-published` writes this page from the programs of `bench/published/`, and what it says of
the publications from `bench/published.toml`. How long the same takes by hand is [a page of its
own](by-hand.md).

Each kernel is trained with the work that is measured, as in the publications. *Published* and
*here* are in percent better than the plain kernel, here *modelled*: by the guest's clock. Columns
between *here* and *kernel instructions* are the same figure for a group of cases. The other columns
are percent fewer than in the plain kernel: instructions and taken branches of the kernel are
*counted*, cycles and misses are *modelled* ([the emulated PMU](../pmu.md)) on the core that each
table names; the last is the growth of the text in percent. Means are geometric, over the cases
named below each table. In parentheses is what the publication calls an image: its iFDO,
instrumented FDO, is `pgo`.

"""

_SECTION = """## {title}

{figure}

| {heads} |
{lines}
{rows}

{made}

{differs}
{heatmaps}"""

_HEATMAPS = """
Where in the text the kernels execute, as the publication's instruction heatmaps: a row is {bytes}
bytes of text, the lowest address at the bottom, and a column a stretch of time; light is often,
black is never (*counted*, the first boot of each image).

![Instructions by address and time of each image](../images/{picture})
"""


if __name__ == "__main__":
    main()
