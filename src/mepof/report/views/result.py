"""The head of the page: the result in a sentence, in a figure for each image, and in a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.measure.metrics import METRICS, Metric
from mepof.report.model import Image, Report, SummaryRow, TrainingRow
from mepof.report.plots.forest import Estimate, Forest, Track, forest
from mepof.report.views.image_set import ImageSet

_NBSP = "\N{NO-BREAK SPACE}"

# What a reader judges by; events explain these, and controls must not move.
MAIN = tuple(metric for metric in METRICS if not (metric.control or metric.may_be_none))


@dataclass(frozen=True)
class Card:
    """What one image came to.

    Attributes:
        row: in the metric that counts most; None if nothing was compared.
        cost_percent: how much the cost of one operation changes.
        further: titles and rows of the other main metrics.
        apart: the first metric over trained cases and over others.
    """

    image: Image
    row: SummaryRow | None
    title: str
    cost_percent: float | None
    further: tuple[tuple[str, SummaryRow], ...]
    apart: tuple[TrainingRow, ...]
    faster: int
    slower: int


@dataclass(frozen=True)
class Result:
    """The head.

    Attributes:
        sentence: the whole result.
        plot: geometric means by metric and image.
        rows: what is plotted, by metric.
    """

    sentence: str
    cards: tuple[Card, ...]
    plot: Forest | None
    rows: tuple[tuple[Metric, tuple[SummaryRow, ...]], ...]


def result_of(report: Report, image_set: ImageSet) -> Result:
    """What the head says."""
    cards = tuple(_card(report, image) for image in image_set.sound)
    rows = tuple((metric, found) for metric in MAIN if (found := _rows(report, metric)))
    tracks = [
        Track(metric.title, [_estimate(row, image_set) for row in found], note=_note(metric, found))
        for metric, found in rows
    ]
    return Result(
        sentence=_sentence(report, image_set, cards),
        cards=cards,
        plot=forest(tracks) if tracks else None,
        rows=rows,
    )


def _note(metric: Metric, rows: Sequence[SummaryRow]) -> str:
    """The kind of the figures, unless the title says it."""
    kind = rows[0].kind
    return "" if kind in metric.title else kind


def _rows(report: Report, metric: Metric) -> tuple[SummaryRow, ...]:
    return tuple(row for row in report.summary if row.metric == metric.name)


def _estimate(row: SummaryRow, image_set: ImageSet) -> Estimate:
    return Estimate(
        image_set.numbers[row.image],
        row.geomean_improvement_percent,
        row.interval_percent,
        row.verdict,
    )


def _card(report: Report, image: Image) -> Card:
    ours = {row.metric: row for row in report.summary if row.image == image.name}
    known = [(metric.title, ours[metric.name]) for metric in MAIN if metric.name in ours]
    if not known:
        return Card(image, None, MAIN[0].title, None, (), (), 0, 0)
    title, row = known[0]
    cases = [c for c in report.cases if (c.image, c.metric) == (image.name, row.metric)]
    return Card(
        image=image,
        row=row,
        title=title,
        cost_percent=100 * (1 / (1 + row.geomean_improvement_percent / 100) - 1),
        further=tuple(known[1:]),
        apart=tuple(
            r for r in report.by_training if (r.image, r.metric) == (image.name, row.metric)
        ),
        faster=sum(case.verdict == "faster" for case in cases),
        slower=sum(case.verdict == "slower" for case in cases),
    )


def _sentence(report: Report, image_set: ImageSet, cards: Sequence[Card]) -> str:
    if image_set.baseline is None:
        states = [_state(image) for image in report.images]
        return f"{' '.join(states)} There was nothing to compare it with."
    if not image_set.baseline.sound:
        return f"Nothing was compared: the baseline {_state(image_set.baseline)}"
    judged = [card for card in cards if card.row is not None]
    if not judged:
        return "Nothing was compared: " + " ".join(_state(image) for image in image_set.subjects)
    best = max(judged, key=_improvement)
    which = f", the best of {len(judged)} images," if len(judged) > 1 else ""
    found = _found(best, image_set.baseline.name, report.precision_percent)
    return f"{best.image.name}{which} {found}"


def _improvement(card: Card) -> float:
    return card.row.geomean_improvement_percent if card.row else float("-inf")


def _found(card: Card, baseline: str, precision: float) -> str:
    row, cost = card.row, card.cost_percent
    assert row is not None and cost is not None
    what = card.title[0].lower() + card.title[1:]
    over = f"over {row.cases} case{'s' if row.cases != 1 else ''}"
    match row.verdict:
        case "faster" | "slower":
            amount = f"{abs(cost):.1f}{_NBSP}% {'fewer' if cost < 0 else 'more'} {what}"
            return f"does the same work with {amount} than {baseline}, on average {over}."
        case "no difference":
            return (
                f"does the same work with as many {what} as {baseline}, to within "
                f"{precision:g}{_NBSP}%, on average {over}."
            )
        case _:
            return (
                f"cannot be told from {baseline} yet: there is not enough data on its {what}, "
                f"on average {over}."
            )


def _state(image: Image) -> str:
    if image.sound:
        return f"{image.name} booted and passed its self-check."
    return f"{image.name} {'failed its self-check' if image.booted else 'did not boot'}."
