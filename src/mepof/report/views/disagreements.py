"""Where the main metrics disagree, in words; the terminal shows them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.report.metrics import MAIN, less_word
from mepof.report.model import Disagreement, Report
from mepof.report.text import relative

# The rest is in report.json, and every value is in the tables.
_MAX_SHOWN = 8
_TITLES = {metric.name: metric.title for metric in MAIN}


@dataclass(frozen=True)
class DisagreementLine:
    """One disagreement, such as ``opt``, ``kbench/proc``, and what is fewer but what is more."""

    image: str
    where: str
    text: str


@dataclass(frozen=True)
class DisagreementLines:
    """Those that are shown, and how many are not."""

    shown: tuple[DisagreementLine, ...]
    further: int


def disagreement_lines(report: Report) -> DisagreementLines:
    """The disagreements of a report: those of geometric means, then the largest increases."""
    reductions: dict[tuple[str, str | None, str | None, str], float | None] = {
        (s.image, None, None, s.metric): s.geomean_reduction_percent for s in report.summary
    }
    reductions |= {(c.image, c.suite, c.case, c.metric): c.reduction_percent for c in report.cases}
    modelled = {s.metric for s in report.summary if s.kind == "modelled"}

    def of(one: Disagreement, metric: str) -> float:
        return reductions.get((one.image, one.suite, one.case, metric)) or 0.0

    def amounts(one: Disagreement, metrics: Sequence[str]) -> str:
        *first, last = (
            f"{relative(of(one, metric), less_word(metric))} {_in_sentence(_TITLES[metric])}"
            f"{' (modelled)' if metric in modelled else ''}"
            for metric in metrics
        )
        return f"{', '.join(first)} and {last}" if first else last

    ordered = sorted(
        report.disagreements,
        key=lambda one: (one.case is not None, min(of(one, metric) for metric in one.worse)),
    )
    lines = [
        DisagreementLine(
            image=one.image,
            where="geometric mean" if one.case is None else f"{one.suite}/{one.case}",
            text=f"{amounts(one, one.better)}, but {amounts(one, one.worse)}",
        )
        for one in ordered
    ]
    return DisagreementLines(tuple(lines[:_MAX_SHOWN]), len(lines[_MAX_SHOWN:]))


def _in_sentence(title: str) -> str:
    return title[0].lower() + title[1:]
