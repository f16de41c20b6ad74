"""The report in a few lines on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mepof.errors import listed
from mepof.gate.verdict import CheckVerdict
from mepof.measure.metrics import METRICS, Metric
from mepof.report.files import NAMES
from mepof.report.metrics import SIGNS, less_word
from mepof.report.model import CaseRow, Image, Interval, Report, SummaryRow
from mepof.report.text import (
    amount,
    indented,
    printable,
    relative,
    relative_interval,
    size,
    text_size,
)
from mepof.report.views.checks import FAILING, counts_of, uncounted_of
from mepof.report.views.comparisons import comparison_lines
from mepof.report.views.disagreements import disagreement_lines

_MAX_TESTS = 5
_STYLE = {"faster": "green", "slower": "red", "no difference": "", "not enough data": "dim"}


def summary(report: Report, directory: Path | None = None) -> RenderableType:
    """A short table for each image: change per case, geometric mean, sizes, goals, warnings.

    Args:
        directory: that holds the report's files, which are listed at the end.
    """
    parts: list[RenderableType] = []
    for image in report.images:
        if image.sound and not image.baseline:
            parts += [_table(report, image), Text()]
    reference = next((i for i in report.images if i.baseline), None)
    for image in report.images:
        line = Text(f"{printable(image.name)}: ")
        if image.sound:
            line.append("booted, self-check passed", style="green")
        else:
            why = indented(image.self_check)
            if image.app_failed:
                line.append("booted, self-check passed, but ")
            else:
                why = f"{image.how_it_failed.upper()}: {why}"
            line.append(why, style="bold red")
        if image.size_bytes.text is not None:
            line.append(f", text {text_size(image, reference)}")
        line.append(f", image {size(image.size_bytes.image)}")
        line.append(_memory(image, reference))
        for group, index in image.indices.items():
            line.append(f", index of {group} {index:,.1f}")
        parts.append(line)
    for goal in report.goals:
        line = Text("goal ")
        line.append("met" if goal.met else "MISSED", style="green" if goal.met else "bold red")
        line.append(f": {printable(goal.image)}, {goal.title}: {indented(goal.reason)}")
        parts.append(line)
    parts += [check_lines(check) for check in report.checks]
    parts += _comparisons(report)
    for control in report.controls:
        what = "booted with other seeds" if control.kind == "same build" else "relinked"
        result = "no difference found" if control.passed else "FAILED, see the warnings"
        if control.undecided:
            result = "not enough boots to say"
        parts.append(Text(f"control, {printable(control.image)} {what}: {result}"))
    parts += _disagreements(report)
    parts += [Text(f"warning: {indented(w)}", style="yellow") for w in report.warnings]
    if directory is not None:
        for name in NAMES:
            parts.append(Text(printable(str(directory / name)), no_wrap=True, overflow="ignore"))
    return Group(*parts)


def check_lines(check: CheckVerdict) -> RenderableType:
    """The result of tests: a line for each gate and image, and each test that was lost."""
    parts: list[RenderableType] = []
    for gate in check.gates:
        parts.append(Text(f"{gate.gate}: {printable(counts_of(gate, check.baseline))}"))
        for image in gate.images:
            line = Text(f"  {printable(image.image)} ")
            if image.failure is not None:
                line.append(f"FAILED: {indented(image.failure)}", style="bold red")
            elif image.regressions:
                line.append(f"FAILED {len(image.regressions)} of them", style="bold red")
            else:
                line.append("passes all of them", style="green")
            if image.fixed:
                line.append(f", and {len(image.fixed)} that {printable(check.baseline)} does not")
            parts.append(line)
            parts += [Text(f"    {printable(each.line)}") for each in image.regressions]
        for what, names in uncounted_of(gate):
            if what != FAILING:
                parts.append(Text(f"  {what}: {printable(listed(names, _MAX_TESTS))}"))
    return Group(*parts)


def _disagreements(report: Report) -> Iterator[RenderableType]:
    lines = disagreement_lines(report)
    for line in lines.shown:
        where = f"main metrics disagree: {line.image}, {line.where}: {line.text}"
        yield Text(printable(where), style="yellow")
    if lines.further:
        yield Text(f"main metrics disagree in {lines.further} more, see report.html", "yellow")


def _comparisons(report: Report) -> Iterator[RenderableType]:
    lines = comparison_lines(report)
    for line in lines.shown:
        text = f"{line.title}, {line.image}, {line.metric}: {line.result}"
        if line.measured:
            text += f" ({'; '.join(filter(None, (line.kind, line.interval)))})"
        yield Text(printable(text), style="" if line.measured else "yellow")
    if lines.further:
        yield Text(f"{lines.further} more comparisons of cases, see report.html")


def _memory(image: Image, reference: Image | None) -> str:
    """The memory that the kernel takes after boot, if it is known, and its change."""
    memory = image.memory.after_boot
    if memory is None:
        return ""
    text = f", {size(memory.used)} of memory after boot"
    theirs = reference.memory.after_boot if reference and image is not reference else None
    if theirs is None:
        return text
    return f"{text} ({relative(100 * (1 - memory.used / theirs.used), 'less')})"


def _table(report: Report, image: Image) -> Table:
    """Every case: change with interval in the first metric, and without in the others."""
    compared = report.baseline is not None
    title = printable(image.name)
    if report.baseline is not None:
        title += f" against {printable(report.baseline)}"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    cases = {(c.suite, c.case, c.metric): c for c in report.cases if c.image == image.name}
    totals = {s.metric: s for s in report.summary if s.image == image.name}
    groups = {(g.group, g.metric): g for g in report.by_group if g.image == image.name}
    kinds = {row.metric: f", {row.kind}" for row in cases.values()}
    shown = [m for m in METRICS[:2] if m.name in kinds] or [METRICS[-1]]
    for metric in shown:
        name = f"{metric.title.lower()}{kinds.get(metric.name, '')}"
        table.add_column(name, justify="right", min_width=12, max_width=16)
        if compared and metric is shown[0]:
            table.add_column("95 % interval", justify="right")

    for suite, case in dict.fromkeys((suite, case) for suite, case, _ in cases):
        cells = [Text(printable(case))]
        for metric in shown:
            row = cases.get((suite, case, metric.name))
            if not compared:
                cells.append(Text(amount(row.value if row else None)))
                continue
            cells.append(_change(row, row.reduction_percent if row else None, metric))
            if metric is shown[0]:
                cells.append(_interval(row, metric))
        table.add_row(*cells)
    if totals:
        names = [*dict.fromkeys(group for group, _ in groups)]
        for name in names if len(names) > 1 else ():
            ours = [groups.get((name, metric.name)) for metric in shown]
            table.add_row(f"mean of {printable(name)}", *_mean_cells(ours, shown))
        means = [totals.get(metric.name) for metric in shown]
        table.add_row("geometric mean", *_mean_cells(means, shown), style="bold")
        less = less_word(shown[0].name)
        table.caption = Text(
            f"percent {less} or more per operation than {printable(str(report.baseline))}; "
            f"verdict: ▼ {less}, ▲ more, = no difference, ? not enough data",
            style="dim",
        )
        table.caption_justify = "left"
    return table


def _mean_cells(means: Sequence[SummaryRow | None], shown: Sequence[Metric]) -> Iterator[Text]:
    """A change for each metric, with the interval of the first."""
    for mean, metric in zip(means, shown, strict=True):
        yield _change(mean, mean.geomean_reduction_percent if mean else None, metric)
        if metric is shown[0]:
            yield _interval(mean, metric)


def _change(row: CaseRow | SummaryRow | None, reduction: float | None, metric: Metric) -> Text:
    sign, style = (f"{SIGNS[row.verdict]} ", _STYLE[row.verdict]) if row else ("", "")
    return Text(f"{sign}{relative(reduction, less_word(metric.name))}", style=style)


def _interval(row: CaseRow | SummaryRow | None, metric: Metric) -> Text:
    known: Interval | None = None
    if row is not None and row.interval_method != "none":
        known = row.reduction_interval_percent
    return Text(relative_interval(known, less_word(metric.name)), style="dim")
