"""Cases against each other on one image, in words; the terminal shows them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mepof.measure.case_pairs import PairRow, PairSide
from mepof.measure.quantities import QUANTITIES
from mepof.report.model import Report
from mepof.report.text import amount, signed_amount

# Of suites' own comparisons on the terminal; the page has all.
_MAX_LINES = 8


@dataclass(frozen=True)
class ComparisonLine:
    """Two cases on one image in one quantity.

    Attributes:
        kind: of the figures: counted, modelled or timed, and whether natively.
        first: the cost of an operation of the first case; likewise ``second``.
        first_parts: of the kernel and of user space, and the events; likewise ``second_parts``.
        result: the ratio, the difference or the cost of an event; or why there is none.
        interval: of the result; empty if there is none.
    """

    title: str
    image: str
    metric: str
    kind: str
    first: str
    first_parts: str
    second: str
    second_parts: str
    result: str
    interval: str
    measured: bool


@dataclass(frozen=True)
class ComparisonTable:
    """The comparisons that a program or a suite asks for.

    Attributes:
        suite: None for the program's, which are not folded away.
    """

    suite: str | None
    rows: tuple[ComparisonLine, ...]


@dataclass(frozen=True)
class ShownLines:
    """The lines of the terminal, and how many rows it leaves to the page."""

    shown: tuple[ComparisonLine, ...]
    further: int


def comparisons_of(report: Report) -> tuple[ComparisonTable, ...]:
    """The program's comparisons, then those of each suite."""
    suites = dict.fromkeys(row.suite for row in report.comparisons)
    return tuple(
        ComparisonTable(
            suite, tuple(_line(row) for row in report.comparisons if row.suite == suite)
        )
        for suite in suites
    )


def comparison_lines(report: Report) -> ShownLines:
    """All that the program asks for, and the first ones of suites."""
    asked = [row for row in report.comparisons if row.suite is None]
    own = [row for row in report.comparisons if row.suite is not None]
    shown = [*asked, *own[:_MAX_LINES]]
    return ShownLines(tuple(map(_line, shown)), len(own[_MAX_LINES:]))


def _line(row: PairRow) -> ComparisonLine:
    quantity = QUANTITIES[row.metric]
    metric = quantity.in_sentence
    if row.event is not None:
        metric += f" per {_singular(QUANTITIES[row.event].in_sentence)}"
    kind = row.kind if row.kind == "modelled" or not row.native else f"{row.kind}, native"
    shown = row.shown
    if row.reason is not None or shown.value is None:
        result, interval = f"not measured: {row.reason}", ""
    else:
        result, interval = _value(row, shown.value), ""
        if shown.interval is not None:
            low, high = shown.interval
            start = amount(low) if row.by == "ratio" else signed_amount(low)
            interval = f"{start} to {_value(row, high)}"
    return ComparisonLine(
        title=row.title,
        image=row.image,
        metric=metric,
        kind=kind,
        first=_cost(row, "first"),
        first_parts=_parts(row, "first"),
        second=_cost(row, "second"),
        second_parts=_parts(row, "second"),
        result=result,
        interval=interval,
        measured=row.reason is None,
    )


def _cost(row: PairRow, which: Literal["first", "second"]) -> str:
    """A case and its cost, such as ``walk-4k: 84.500``."""
    suite, _, case = getattr(row, which).partition("/")
    return (
        f"{case if row.suite == suite else f'{suite}/{case}'}: {amount(getattr(row.shown, which))}"
    )


def _parts(row: PairRow, which: Literal["first", "second"]) -> str:
    """What a cost is made of, such as ``kernel 0.1, user 84.4``."""
    if row.shown is row.kernel:
        return "kernel alone"
    sides: Sequence[tuple[str, PairSide | None]] = (("kernel", row.kernel), ("user", row.user))
    known = [(name, getattr(side, which)) for name, side in sides if side is not None]
    parts = [f"{name} {amount(value)}" for name, value in known if value is not None]
    events: float | None = getattr(row.both, f"{which}_events")
    if row.event is not None and events is not None:
        parts.append(f"{amount(events)} {QUANTITIES[row.event].in_sentence}")
    return ", ".join(parts)


def _value(row: PairRow, value: float) -> str:
    return f"{amount(value)} times" if row.by == "ratio" else signed_amount(value)


def _singular(title: str) -> str:
    ends = "es" if title.endswith(("misses", "branches")) else "s"
    return title.removesuffix(ends)
