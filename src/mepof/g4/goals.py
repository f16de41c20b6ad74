"""Which goals hold for an ``eval``, and whether it can measure them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mepof.g4.ast import Eval, Goal, Program, Set, Word
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import Bindings, HostPath, is_path
from mepof.g4.settings import signed_percent
from mepof.g4.source import Span
from mepof.g4.words import Vocabulary
from mepof.measure.goal import DEFAULT_METRIC, SIZES


def metrics_of(statement: Goal) -> tuple[str | None, ...]:
    """The metrics that a goal is about; None for a size."""
    if statement.quantity.text in SIZES:
        return (None,)
    return tuple(dict.fromkeys(w.text for w in statement.metrics)) or (DEFAULT_METRIC,)


def quantity_of(statement: Goal) -> tuple[str, str | None]:
    """The quantity of a goal, and the group of cases after its colon; None for all cases."""
    quantity, colon, group = statement.quantity.text.partition(":")
    return quantity, group if colon else None


def check_bound(quantity: str, text: str) -> None:
    """Check the bound of a goal.

    Raises:
        ValueError: it is not a percentage, or nothing can reach it.
    """
    fewer = signed_percent(text) * (-1 if quantity in SIZES else 1)
    if fewer >= 100:
        raise ValueError("nothing can be 100 % fewer or smaller")


_Key = tuple[str, str | None, str | None]
"""Quantity, group and metric."""


@dataclass
class _Held:
    """A goal that holds.

    Attributes:
        used: whether an ``eval`` compares images by it.
    """

    span: Span
    metric: Word | None
    quantity: Word
    used: bool = False


def unmeasured(
    program: Program, bindings: Bindings, vocabulary: Vocabulary, archs: Sequence[str]
) -> Iterator[Diagnostic]:
    """Goals that no ``eval`` uses, and those that an ``eval`` cannot measure.

    Args:
        vocabulary: an unknown group of cases is reported elsewhere.
        archs: the architecture at each statement.
    """
    printed = vocabulary.printed_costs
    held: dict[_Key, _Held] = {}
    cored = False
    for index, statement in enumerate(program.statements):
        match statement:
            case Set(key=key) if key.text == "core":
                cored = True
            case Goal():
                for name in metrics_of(statement):
                    word = next((w for w in statement.metrics if w.text == name), None)
                    about = (*quantity_of(statement), name)
                    earlier = held.get(about)
                    if earlier is not None and not earlier.used:
                        yield _unused(earlier, "another bound follows first")
                    span = word.span if word else statement.span
                    held[about] = _Held(span, word, statement.quantity)
            case Eval() if len(statement.images) > 1:
                measured = [w.text for w in statement.metrics] or vocabulary.default_metrics
                # A path of something else is reported elsewhere, too.
                own = {g for _, g, _ in held if g and is_path(g) and g.endswith(".toml")}
                missing = {*vocabulary.metrics, *own} - {*measured}
                for (quantity, group, metric), goal in held.items():
                    goal.used = True
                    if quantity in SIZES:
                        if quantity == "text":
                            yield from _files(statement, bindings, index)
                    elif group in missing:
                        yield _without_group(goal, group)
                    elif metric in vocabulary.core_costs and not cored:
                        yield _without_core(goal)
                    elif metric and archs[index] not in vocabulary.arch_costs.get(metric, archs):
                        yield _of_other_arch(goal, archs[index], vocabulary.arch_costs[metric])
                    elif (
                        metric not in vocabulary.control_costs
                        and {group or each for each in measured} <= vocabulary.control_groups
                    ):
                        yield _of_controls(goal, group)
                    elif metric and metric in printed and group in (None, *measured):
                        yield from _unprinted(goal, group, measured, printed[metric])
    for goal in held.values():
        if not goal.used:
            yield _unused(goal, "none that compares images follows")


def _unused(goal: _Held, why: str) -> Diagnostic:
    return Diagnostic(
        goal.span,
        f"no `eval` uses this goal: {why}",
        "a goal holds for the `eval` statements below it; they need a baseline and another image",
    )


def _without_group(goal: _Held, group: str | None) -> Diagnostic:
    assert group is not None
    length = len(goal.quantity.text)
    return Diagnostic(
        goal.quantity.part(length - len(group), length),
        f"nothing measures {quote(group)}: an `eval` below does not name it",
        f"add {quote(group)} to the metrics of that `eval`, or move the goal below it",
    )


def _without_core(goal: _Held) -> Diagnostic:
    assert goal.metric is not None
    return Diagnostic(
        goal.metric.span,
        f"nothing measures {quote(goal.metric.text)}: no core is modelled",
        "write `set core` before the `eval`, such as `set core zen4`",
    )


def _of_other_arch(goal: _Held, arch: str, having: Collection[str]) -> Diagnostic:
    assert goal.metric is not None
    return Diagnostic(
        goal.metric.span,
        f"nothing measures {quote(goal.metric.text)} on {arch}",
        f"it is known on {', '.join(sorted(having))}: name another metric",
    )


def _of_controls(goal: _Held, group: str | None) -> Diagnostic:
    cases = "every case of the `eval` below" if group is None else f"every case of {quote(group)}"
    return Diagnostic(
        goal.span,
        f"nothing is measured for this goal: {cases} is a control, which kernels do not change",
        "name cases that work in the kernel",
    )


def _unprinted(
    goal: _Held, group: str | None, measured: Collection[str], printing: Collection[str]
) -> Iterator[Diagnostic]:
    if not {*printing} & ({group} if group else {*measured}):
        assert goal.metric is not None
        cases = "no case of the `eval` below" if group is None else f"no case of {quote(group)}"
        yield Diagnostic(
            goal.metric.span,
            f"nothing measures {quote(goal.metric.text)}: {cases} prints its figures",
            f"cases of {', '.join(map(quote, sorted(printing)))} do",
        )


def _files(statement: Eval, bindings: Bindings, index: int) -> Iterator[Diagnostic]:
    for word in statement.images:
        if word.text and isinstance(bindings.resolve(word, "image", index), HostPath):
            yield Diagnostic(
                word.span,
                f"{quote(word.text)} is a file, whose text has no known size for the goal `text`",
                "name images that the program builds",
            )
