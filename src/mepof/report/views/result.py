"""The head of the page: the result in a sentence, in a figure for each image, and in a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.measure.measurement import control_of
from mepof.measure.metrics import Metric
from mepof.report.metrics import MAIN, less_word
from mepof.report.model import Image, Report, SummaryRow, TrainingRow
from mepof.report.plots.forest import Forest, Track, forest
from mepof.report.views.estimates import mean_estimate
from mepof.report.views.image_set import ImageSet

_NBSP = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Card:
    """The result of one image.

    Attributes:
        row: in the first main metric that was measured; None if nothing was compared.
        title: of that metric.
        boots: how many boots the row is based on, in words.
        further: titles and rows of the other main metrics.
        by_training: the first metric over trained, near, far or untrained cases.
        better: how many cases have a lower cost.
        worse: how many cases have a higher cost.
    """

    image: Image
    row: SummaryRow | None
    title: str
    boots: str
    further: tuple[tuple[str, SummaryRow], ...]
    by_training: tuple[TrainingRow, ...]
    better: int
    worse: int


@dataclass(frozen=True)
class Result:
    """The head.

    Attributes:
        sentence: the whole result.
        baseline_boots: which boots of the baseline the images are compared with, in words.
        plot: geometric means by metric and image.
        rows: what is plotted, by metric.
    """

    sentence: str
    cards: tuple[Card, ...]
    baseline_boots: str
    plot: Forest | None
    rows: tuple[tuple[Metric, tuple[SummaryRow, ...]], ...]


def result_of(report: Report, image_set: ImageSet) -> Result:
    """What the head shows."""
    cards = tuple(_card(report, image) for image in image_set.sound)
    rows = tuple((metric, found) for metric in MAIN if (found := _rows(report, metric)))
    tracks = [
        Track(
            metric.title,
            [mean_estimate(row, image_set) for row in found],
            note=_note(metric, found),
        )
        for metric, found in rows
    ]
    return Result(
        sentence=_sentence(report, image_set, cards),
        cards=cards,
        baseline_boots=next(
            (_baseline_boots(report, found[0].baseline_boots) for _, found in rows), ""
        ),
        plot=forest(tracks, less="less") if tracks else None,
        rows=rows,
    )


def _note(metric: Metric, rows: Sequence[SummaryRow]) -> str:
    """The kind of the figures, unless the title says it."""
    kind = rows[0].kind
    return "" if kind in metric.title else kind


def _rows(report: Report, metric: Metric) -> tuple[SummaryRow, ...]:
    return tuple(row for row in report.summary if row.metric == metric.name)


def _card(report: Report, image: Image) -> Card:
    ours = {row.metric: row for row in report.summary if row.image == image.name}
    known = [(metric.title, ours[metric.name]) for metric in MAIN if metric.name in ours]
    if not known:
        return Card(image, None, MAIN[0].title, "", (), (), 0, 0)
    title, row = known[0]
    cases = [c for c in report.cases if (c.image, c.metric) == (image.name, row.metric)]
    return Card(
        image=image,
        row=row,
        title=title,
        boots=_boots(row, report),
        further=tuple(known[1:]),
        by_training=tuple(
            r for r in report.by_training if (r.image, r.metric) == (image.name, row.metric)
        ),
        better=sum(case.verdict == "faster" for case in cases),
        worse=sum(case.verdict == "slower" for case in cases),
    )


def _boots(row: SummaryRow, report: Report) -> str:
    baseline = _baseline_boots(report, row.baseline_boots)
    why = f" ({baseline})" if baseline else ""
    return (
        f"{row.boots} boot{_s(row.boots)} of {row.image} "
        f"against {row.baseline_boots} of {report.baseline}{why}"
    )


def _baseline_boots(report: Report, count: int) -> str:
    """What makes up so many boots of the baseline, if its controls add to its own."""
    own = sum(image.boots for image in report.images if image.baseline)
    same = sum(c.boots for c in report.controls if c.kind == "same build")
    layouts = {c.digest: c.boots for c in report.controls if c.kind == "relinked" and c.sound}
    copies = {image.digest for image in report.images if image.baseline}
    relinked = [boots for digest, boots in layouts.items() if digest not in copies]
    # A row of cases that not every boot could run has fewer.
    if not (same or relinked) or own + same + sum(relinked) != count:
        return ""
    parts = [f"its own {own}"]
    if same:
        parts.append(f"{same} of its A/A control")
    if relinked:
        builds = "its relinked build" if len(relinked) == 1 else f"{len(relinked)} relinked builds"
        parts.append(f"{sum(relinked)} of {builds}")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sentence(report: Report, image_set: ImageSet, cards: Sequence[Card]) -> str:
    if image_set.baseline is None:
        states = [_state(image) for image in report.images]
        return f"{' '.join(states)} There was nothing to compare it with."
    if not image_set.baseline.sound:
        return f"Nothing was compared: the baseline {_state(image_set.baseline)}"
    if (control := report.failed_control) is not None:
        return f"Nothing was compared: {control_of(control.image)} {control.how_it_failed}."
    judged = [card for card in cards if card.row is not None]
    if not judged:
        return "Nothing was compared: " + " ".join(_state(image) for image in image_set.subjects)
    best = max(judged, key=_standing)
    proven = best.row is not None and best.row.verdict != "not enough data"
    which = f", the best of {len(judged)} images," if proven and len(judged) > 1 else ""
    found = _found(best, image_set.baseline.name, report.precision_percent)
    return f"{best.image.name}{which} {found}"


def _standing(card: Card) -> tuple[int, float]:
    """What an image is proven to be, and its estimate: a larger one may be luck."""
    assert card.row is not None
    proven = {"faster": 2, "no difference": 1}
    return proven.get(card.row.verdict, 0), card.row.geomean_reduction_percent


def _found(card: Card, baseline: str, precision: float) -> str:
    row = card.row
    assert row is not None
    what = card.title[0].lower() + card.title[1:]
    over = f"over {row.cases} case{_s(row.cases)}"
    reduction = row.geomean_reduction_percent
    less = less_word(row.metric)
    match row.verdict:
        case "faster" | "slower":
            amount = f"{abs(reduction):.1f}{_NBSP}% {less if reduction > 0 else 'more'} {what}"
            return f"does the same work with {amount} than {baseline}, on average {over}."
        case "no difference":
            return (
                f"does the same work with as {'much' if less == 'less' else 'many'} {what} as "
                f"{baseline}, to within {precision:g}{_NBSP}%, on average {over}."
            )
        case _:
            return (
                f"cannot yet be distinguished from {baseline}: there is not enough data on its "
                f"{what}, on average {over}."
            )


def _state(image: Image) -> str:
    if image.sound:
        return f"{image.name} booted and passed its self-check."
    return f"{image.name} {image.how_it_failed}."


def _s(count: int) -> str:
    return "" if count == 1 else "s"
