"""Cases that a program compares with each other, and whether an ``eval`` measures them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mepof.g4.ast import Compare, Eval, Program, Set, Word
from mepof.g4.diagnostics import Diagnostic, quote, suggestion
from mepof.suite.comparison import WAYS

_EVENT_WAY = "per-event"


def way_of(statement: Compare) -> tuple[str, str | None]:
    """How cases are compared, and the event after the colon; None without a colon."""
    way, colon, event = statement.way.text.partition(":")
    return way, event if colon else None


def named(text: str, cases: Collection[str]) -> list[str]:
    """The cases of that name, as ``suite/case``: one, unless the name is unknown or ambiguous."""
    return [case for case in cases if text in (case, case.partition("/")[2])]


def wrong_words(
    statement: Compare, cases: Collection[str], quantities: Collection[str]
) -> Iterator[Diagnostic]:
    """Words of a comparison that do not exist or do not fit.

    Args:
        cases: as ``suite/case``.
        quantities: in which cases can be compared.
    """
    found = [named(word.text, cases) for word in (statement.first, statement.second)]
    for word, known in zip((statement.first, statement.second), found, strict=True):
        if word.text:
            yield from _case(word, known, cases)
    if found[0] == found[1] and len(found[0]) == 1:
        yield Diagnostic(
            statement.second.span,
            f"{quote(statement.second.text)} is compared with itself",
            "name two cases",
        )
    if statement.way.text:
        yield from _way(statement, quantities)
    for metric in statement.metrics:
        if metric.text and metric.text not in quantities:
            yield _unknown_metric(metric, metric.text, quantities)
        elif metric.text == way_of(statement)[1]:
            yield Diagnostic(
                metric.span,
                f"{quote(metric.text)} is the event, which costs one of itself",
                "name another metric, such as `cycles`",
            )


def unmeasured(
    program: Program,
    cases: Mapping[str, str],
    core_quantities: Collection[str],
    default_groups: Collection[str],
) -> Iterator[Diagnostic]:
    """Comparisons that no ``eval`` uses, and those that an ``eval`` cannot measure.

    Args:
        cases: the group of each, by ``suite/case``.
        core_quantities: those that only a modelled core has.
        default_groups: those that an ``eval`` measures if it names none.
    """
    held: list[_Held] = []
    cored = False
    for statement in program.statements:
        match statement:
            case Set(key=key) if key.text == "core":
                cored = True
            case Compare():
                held.append(_Held(statement))
            case Eval():
                measured = [word.text for word in statement.metrics] or default_groups
                for each in held:
                    each.used = True
                    yield from _without_group(each.statement, cases, measured)
                    if not cored:
                        yield from _without_core(each.statement, core_quantities)
    for each in held:
        if not each.used:
            yield Diagnostic(
                each.statement.span,
                "no `eval` uses this comparison: none follows",
                "a comparison holds for the `eval` statements below it",
            )


@dataclass
class _Held:
    """A comparison that holds, and whether an ``eval`` uses it."""

    statement: Compare
    used: bool = False


def _case(word: Word, found: list[str], cases: Collection[str]) -> Iterator[Diagnostic]:
    if not found:
        known = cases if "/" in word.text else [case.partition("/")[2] for case in cases]
        yield Diagnostic(
            word.span, f"unknown case {quote(word.text)}", suggestion(word.text, known)
        )
    elif len(found) > 1:
        suites = " and ".join(quote(case.partition("/")[0]) for case in found)
        yield Diagnostic(
            word.span,
            f"{quote(word.text)} is a case of {suites}",
            f"write {quote(found[0])}",
        )


def _way(statement: Compare, quantities: Collection[str]) -> Iterator[Diagnostic]:
    word = statement.way
    way, event = way_of(statement)
    if way not in WAYS:
        span = word.part(0, len(way))
        yield Diagnostic(span, f"unknown way {quote(way)} to compare", suggestion(way, WAYS))
    elif way != _EVENT_WAY and event is not None:
        yield Diagnostic(
            word.span, f"{quote(way)} takes no event", f"write {quote(way)} without a colon"
        )
    elif way == _EVENT_WAY and not event:
        yield Diagnostic(
            word.span,
            f"{quote(way)} is missing its event",
            "write it after a colon, such as `per-event:dtlb_misses`",
        )
    elif event is not None and event not in quantities:
        yield _unknown_metric(word, event, quantities)


def _unknown_metric(word: Word, text: str, quantities: Collection[str]) -> Diagnostic:
    span = word.part(len(word.text) - len(text), len(word.text))
    # People write the names of the report's other tables.
    near = text.removeprefix("kernel_").removeprefix("user_")
    if near in quantities:
        return Diagnostic(
            span, f"unknown metric {quote(text)}", f"{quote(near)} has a kernel and a user part"
        )
    return Diagnostic(span, f"unknown metric {quote(text)}", suggestion(text, quantities))


def _without_group(
    statement: Compare, cases: Mapping[str, str], measured: Collection[str]
) -> Iterator[Diagnostic]:
    for word in (statement.first, statement.second):
        found = named(word.text, cases)
        if len(found) == 1 and cases[found[0]] not in measured:
            group = quote(cases[found[0]])
            yield Diagnostic(
                word.span,
                f"nothing measures {quote(word.text)}: an `eval` below does not name {group}",
                f"add {group} to the metrics of that `eval`, or move the comparison below it",
            )


def _without_core(statement: Compare, core_quantities: Collection[str]) -> Iterator[Diagnostic]:
    way, event = way_of(statement)
    asked = [(word, word.text) for word in statement.metrics]
    if event is not None:
        asked.append((statement.way, event))
    elif way == _EVENT_WAY:
        return  # reported as missing its event
    for word, text in asked:
        if text in core_quantities:
            yield _no_core(word, text)
    if event is not None and event not in core_quantities and not statement.metrics:
        yield _no_core(statement.way, "cycles")


def _no_core(word: Word, text: str) -> Diagnostic:
    start = len(word.text) - len(text) if word.text.endswith(text) else 0
    return Diagnostic(
        word.part(start, len(word.text)),
        f"nothing measures {quote(text)}: no core is modelled",
        "write `set core` before the `eval`, such as `set core zen4`",
    )
