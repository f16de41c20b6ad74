"""The report in a few lines on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mepof.measure.metrics import METRICS
from mepof.report.model import CaseRow, Image, Report, SummaryRow
from mepof.report.text import SIGNS, amount, indented, interval, percent, printable, size

_STYLE = {"faster": "green", "slower": "red", "no difference": "", "not enough data": "dim"}


def summary(report: Report, directory: Path | None = None) -> RenderableType:
    """A short table for each image: improvement per case, geometric mean, sizes, warnings.

    Args:
        directory: where the files of the report are, to be told at the end.
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
            state = "FAILED ITS SELF-CHECK" if image.booted else "DID NOT BOOT"
            line.append(f"{state}: {indented(image.self_check)}", style="bold red")
        line.append(f", text {size(image.size_bytes.text)}")
        if reference and image is not reference and reference.size_bytes.text:
            change = 100 * (image.size_bytes.text / reference.size_bytes.text - 1)
            line.append(f" ({percent(change)})")
        line.append(f", image {size(image.size_bytes.image)}")
        for group, index in image.indices.items():
            line.append(f", index of {group} {index:,.1f}")
        parts.append(line)
    for control in report.controls:
        what = "booted with other seeds" if control.kind == "same build" else "relinked"
        result = "nothing was found to differ" if control.passed else "FAILED, see the warnings"
        parts.append(Text(f"control, {printable(control.image)} {what}: {result}"))
    parts += [Text(f"warning: {indented(w)}", style="yellow") for w in report.warnings]
    if directory is not None:
        for name in ("report.html", "report.json", "cases.csv"):
            parts.append(Text(printable(str(directory / name)), no_wrap=True, overflow="ignore"))
    return Group(*parts)


def _table(report: Report, image: Image) -> Table:
    """Every case: improvement with interval in the first metric, and without in the others."""
    compared = report.baseline is not None
    title = printable(image.name)
    if report.baseline is not None:
        title += f" against {printable(report.baseline)}"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("case", no_wrap=True)
    cases = {(c.suite, c.case, c.metric): c for c in report.cases if c.image == image.name}
    totals = {s.metric: s for s in report.summary if s.image == image.name}
    measured = {metric for _, _, metric in cases}
    shown = [m for m in METRICS[:2] if m.name in measured] or [METRICS[-1]]
    for metric in shown:
        table.add_column(metric.title.lower(), justify="right", min_width=12, max_width=20)
        if compared and metric is shown[0]:
            table.add_column("95 % interval", justify="right", no_wrap=True)

    for suite, case in dict.fromkeys((suite, case) for suite, case, _ in cases):
        cells = [Text(printable(case))]
        for metric in shown:
            row = cases.get((suite, case, metric.name))
            if not compared:
                cells.append(Text(amount(row.value if row else None)))
                continue
            style = _STYLE[row.verdict] if row else ""
            shown_percent = percent(row.improvement_percent if row else None)
            cells.append(Text(f"{_sign(row)}{shown_percent}", style=style))
            if metric is shown[0]:
                cells.append(
                    _interval(
                        row.interval_percent if row and row.interval_method != "none" else None
                    )
                )
        table.add_row(*cells)
    if totals:
        cells = [Text("geometric mean", style="bold")]
        for metric in shown:
            total = totals.get(metric.name)
            value = total.geomean_improvement_percent if total else None
            cells.append(
                Text(
                    f"{_sign(total)}{percent(value)}",
                    style=f"bold {_STYLE[total.verdict]}" if total else "",
                )
            )
            if metric is shown[0]:
                cells.append(
                    _interval(
                        total.interval_percent
                        if total and total.interval_method != "none"
                        else None
                    )
                )
        table.add_row(*cells)
        table.caption = Text(
            "improvement = baseline / cost - 1, per operation; verdict: ▲ faster, ▼ slower, "
            "= no difference, ? not enough data",
            style="dim",
        )
        table.caption_justify = "left"
    return table


def _sign(row: CaseRow | SummaryRow | None) -> str:
    return f"{SIGNS[row.verdict]} " if row else ""


def _interval(bounds: tuple[float, float] | None) -> Text:
    return Text(interval(bounds), style="dim")
