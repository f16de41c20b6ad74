"""What the commands of ``mepof profile`` print."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from mepof import _engine
from mepof.errors import listed

Document = dict[str, Any]

# Columns that a fact gets on however narrow a terminal.
_MIN_FACT = 20

_STYLES = {"good": "green", "poor": "bold red"}


def verdict(done: Document) -> RenderableType:
    """The verdict on a conversion, what it read, and the files that it wrote."""
    judged = done["verdict"]
    shown = FactTable()
    head = Text(judged["quality"], style=_STYLES[judged["quality"]])
    shown.add_row(Text("verdict"), head)
    for reason in done["reasons"]:
        shown.add_row(Text(), Text(reason))
    for note in judged.get("notes", ()):
        shown.add_row(Text("note"), Text(note))
    for one in judged["inputs"]:
        _input(shown, one)
    for one in judged["binaries"]:
        _binary(shown, one)
    shown.add_row(
        Text("sampling"),
        Text(
            f"about {judged['expected_overlap_percent']:.1f} % overlap with a second branch trace "
            "of the same work"
        ),
    )
    for path in done["outputs"]:
        shown.add_row(Text("written"), Text(path))
    return shown


def _input(shown: FactTable, one: Document) -> None:
    about = [one["format"], one["kernel_release"], one["cpu"], *one["events"]]
    shown.add_row(Text("input"), Text(f"{one['path']}: {', '.join(filter(None, about))}"))
    shown.add_row(Text("  samples"), counts(one["samples"]))
    if one["entries"]["read"]:
        shown.add_row(Text("  entries"), counts(one["entries"]))
    for note in one["notes"]:
        shown.add_row(Text("  note"), Text(note))


def _binary(shown: FactTable, one: Document) -> None:
    match = {"same": "build-id matches", "different": "another build-id", "unknown": ""}
    known = match[one["build_id_match"]]
    shown.add_row(Text("binary"), Text(one["path"] + (f": {known}" if known else "")))
    shown.add_row(Text("  branches"), counts(one["branches"]))
    shown.add_row(Text("  ranges"), counts(one["ranges"]))
    mapped = one["mapped_percent"]
    known = "" if mapped is None else f"; {mapped:.1f} % of what ran has debug information"
    text, ran, hot = (one[f"text_bytes{part}"] for part in ("", "_executed", "_hot"))
    shown.add_row(
        Text("  coverage"),
        Text(
            f"{one['functions_executed']:,} of {one['functions']:,} functions ran; "
            f"{percent(ran, text)} of the code ran, {percent(hot, text)} is hot{known}"
        ),
    )


def counts(count: Document) -> Text:
    """Samples used of those read, and the others by cause."""
    text = Text(f"{count['used']:,} used of {count['read']:,}")
    for cause, dropped in sorted(count["dropped"].items(), key=lambda item: -item[1]):
        text.append(f"; {dropped:,} {_engine.CAUSES.get(cause, cause)}")
    return text


def merged(done: Document) -> RenderableType:
    """What a merge wrote."""
    shown = FactTable()
    if done["kind"] == "instrumentation":
        shown.add_row(Text("functions"), Text(f"{done['executed']:,} of {done['functions']:,} ran"))
        shown.add_row(Text("verdict"), Text(done["verdict"], style=_STYLES[done["verdict"]]))
        for reason in done["reasons"]:
            shown.add_row(Text(), Text(reason))
    else:
        for origin in done["provenance"]["inputs"]:
            shown.add_row(
                Text(f"weight {origin['weight']}"),
                Text(
                    f"{origin['name']}: {origin['functions']:,} functions, "
                    f"{origin['total']:,} samples"
                ),
            )
        for name in done["saturated"]:
            shown.add_row(Text("full"), Text(f"counters reached their limit at {name}"))
        if left_out := done["conflicts"]:
            names = listed([conflict["function"] for conflict in left_out], 5)
            shown.add_row(
                Text("left out"),
                Text(f"other control flow than in earlier profiles: {names}"),
            )
        made = done["statistics"]
        shown.add_row(
            Text("sum"), Text(f"{made['functions']:,} functions, {made['total']:,} samples")
        )
    shown.add_row(Text("written"), Text(done["output"]))
    return shown


def comparison(done: Document, base: Path, test: Path) -> RenderableType:
    """How alike two profiles are."""
    facts = FactTable()
    for name, key, meaning in (
        ("flow overlap", "flow_overlap", "the share of execution that both agree on"),
        ("similarity", "similarity", "as llvm-profdata overlap computes it"),
        ("sample overlap", "sample_overlap", "counts in both, of the larger count"),
        ("only in A", "base_unique_share", f"samples of {base} at locations missing from B"),
        ("only in B", "test_unique_share", f"samples of {test} at locations missing from A"),
    ):
        facts.add_row(Text(name), Text(f"{100 * done[key]:6.2f} %  {meaning}"))
    sets = number_table("", "in both", "A only", "B only", numbers=3)
    for name in ("functions", "hot_functions", "hot_lines"):
        row = done[name]
        numbers = (row["common"], row["base_only"], row["test_only"])
        sets.add_row(Text(name.replace("_", " ")), *(Text(f"{number:,}") for number in numbers))
    apart = number_table(
        "function", "share of A", "share of B", "takes from the flow overlap", numbers=3
    )
    for row in done["differences"]:
        shares = (row["base_share"], row["test_share"], row["flow_difference"])
        apart.add_row(Text(row["name"]), *(Text(f"{100 * share:.2f} %") for share in shares))
    return Group(facts, sets, apart) if done["differences"] else Group(facts, sets)


def drift(done: Document, top: int, *, knows_moved: bool) -> RenderableType:
    """What of a profile fits a newer binary."""
    facts = FactTable()
    facts.add_row(
        Text("matched"),
        Text(f"{done['matched_percent']:.2f} % of the samples are at locations that still exist"),
    )
    for change, share in done["changes"].items():
        if change == "moved" and not knows_moved:
            continue
        facts.add_row(
            Text(change),
            Text(f"{share['functions']:,} functions, {share['samples_percent']:.2f} % of samples"),
        )
    worst = sorted(done["functions"], key=lambda f: -_lost(f))[:top]
    table = number_table("function", "", "samples", "matched", numbers=2, first=2)
    for row in (row for row in worst if _lost(row) > 0):
        percents = (row["samples_percent"], row["matched_percent"])
        table.add_row(
            Text(row["name"]), Text(row["change"]), *(Text(f"{p:.2f} %") for p in percents)
        )
    return Group(facts, table) if table.row_count else facts


def _lost(function: Document) -> float:
    """The samples of a function whose locations no longer exist, in percent of all samples."""
    lost: float = function["samples_percent"] * (100 - function["matched_percent"]) / 100
    return lost


def shown(done: Document, path: Path) -> RenderableType:
    """What is in a profile."""
    has = done["statistics"]
    facts = FactTable()
    flags = ("probe_based", "flow_sensitive", "md5_names")
    kind = [done["format"], *(flag.replace("_", " ") for flag in flags if done[flag])]
    facts.add_row(Text("profile"), Text(f"{path}: {', '.join(kind)}"))
    facts.add_row(
        Text("functions"),
        Text(
            f"{has['functions']:,}, {has['functions_with_samples']:,} of them with samples, "
            f"{has['hot_functions']:,} hot; {has['inlined_copies']:,} inlined copies"
        ),
    )
    facts.add_row(
        Text("lines"),
        Text(
            f"{has['body_lines']:,}, {has['body_lines_with_samples']:,} of them with samples, "
            f"{has['hot_lines']:,} hot (at least {has['hot_threshold']:,})"
        ),
    )
    facts.add_row(Text("samples"), Text(f"{has['total']:,}"))
    if done["symbols"]:
        facts.add_row(Text("symbols"), Text(f"{done['symbols']:,} known, cold ones included"))
    hot = number_table("function", "total", "share", "entered", "own lines", numbers=4)
    for row in done["functions"]:
        hot.add_row(
            Text(row["name"]),
            Text(f"{row['total']:,}"),
            Text(percent(row["total"], has["total"])),
            Text(f"{row['head']:,}"),
            Text(f"{row['own_count']:,}"),
        )
    lines = number_table("line", "count", numbers=1)
    for row in done["lines"]:
        location = f"{row['function']}:{row['offset']}"
        if row["discriminator"]:
            location += f".{row['discriminator']}"
        lines.add_row(Text(location), Text(f"{row['count']:,}"))
    return Group(facts, *(table for table in (hot, lines) if table.row_count))


def heat(done: Document, output: Path) -> RenderableType:
    """What a heatmap shows."""
    facts = FactTable()
    every = done["visits"] + done["visits_outside"]
    facts.add_row(
        Text("visits"),
        Text(
            f"{done['visits']:,} of {done['granule_bytes']} bytes each in "
            f"{', '.join(section['name'] for section in done['sections'])}: "
            f"{percent(done['visits'], every)} of all"
        ),
    )
    if done["time"] is None:
        facts.add_row(Text("note"), Text("the input has no times: there is one column"))
    elif done["visits_untimed"]:
        facts.add_row(Text("note"), Text(f"{done['visits_untimed']:,} visits have no time"))
    if done["doubt"] is not None:
        facts.add_row(Text("doubt", "yellow"), Text(done["doubt"]))
    facts.add_row(Text("written"), Text(str(output)))
    return facts


class FactTable:
    """Rows of a name and a fact, wrapped between words: a path stays whole, to be copied."""

    def __init__(self) -> None:
        self._rows: list[tuple[Text, Text]] = []

    def add_row(self, name: Text, fact: Text) -> None:
        """Add a fact."""
        self._rows.append((name, fact))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        column = max((name.cell_len for name, _ in self._rows), default=0) + 2
        width = max(options.max_width - column, _MIN_FACT)
        for name, fact in self._rows:
            label = name.copy()
            label.stylize("dim")
            lines = wrap(fact.plain, width, break_long_words=False, break_on_hyphens=False)
            for line in lines or [""]:
                label.pad_right(column - label.cell_len)
                label.append(line, fact.style)
                label.rstrip()
                label.no_wrap, label.overflow = True, "ignore"
                yield label
                label = Text()


def number_table(*headings: str, numbers: int, first: int = 1) -> Table:
    """A table whose last columns are numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        right = index >= max(first, len(headings) - numbers)
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    return table


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
