"""The report as Markdown, for merge requests, summaries of jobs and chats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from mepof.measure.metrics import Metric
from mepof.report.metrics import MAIN, SIGNS, less_word
from mepof.report.model import CaseRow, Image, Report, SummaryRow
from mepof.report.text import amount, printable, relative, relative_interval, text_size
from mepof.report.views.checks import counts_of
from mepof.report.views.comparisons import comparison_lines
from mepof.report.views.disagreements import disagreement_lines
from mepof.report.views.image_set import ImageSet
from mepof.report.views.result import result_of

_LEGEND = "▼ fewer or less, ▲ more, = no difference, ? not enough data"


def markdown(report: Report) -> str:
    """The result, a table of images, what was judged and warned of, and the cases, collapsed.

    The dialect is that of GitHub and GitLab: CommonMark with tables, and HTML to collapse.
    """
    image_set = ImageSet.of(report)
    blocks = [
        f"**{_plain(result_of(report, image_set).sentence)}**",
        "\n".join(_images(report, image_set)),
        "\n".join(f"- {line}" for line in _judged(report)),
        *(_cases(report, image) for image in image_set.sound),
        _comparisons(report),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _images(report: Report, image_set: ImageSet) -> Iterator[str]:
    """The geometric means of each image, and its sizes."""
    rows = {(row.image, row.metric): row for row in report.summary}
    shown = [metric for metric in MAIN if any(metric.name == name for _, name in rows)]
    kinds = {row.metric: row.kind for row in report.summary}
    titles = [f"{metric.title}, *{kinds[metric.name]}*" for metric in shown]
    yield from _head("image", *titles, "text")
    for image in report.images:
        if not image.sound:
            means = [_plain(image.how_it_failed), *[""] * (len(shown) - 1)][: len(shown)]
        else:
            means = [_change(rows.get((image.name, metric.name)), metric) for metric in shown]
        name = _plain(image.name) + ", the baseline" * image.baseline
        yield _row(name, *means, text_size(image, image_set.baseline))


def _judged(report: Report) -> Iterator[str]:
    """Images that failed, goals, tests, controls, disagreements and warnings."""
    for image in report.images:
        if not image.sound:
            yield f"**{_plain(image.name)} {image.how_it_failed}**: {_plain(image.self_check)}"
    for goal in report.goals:
        state = "met" if goal.met else "**missed**"
        yield f"goal {state}: {_plain(f'{goal.image}, {goal.title}: {goal.reason}')}"
    for check in report.checks:
        for gate in check.gates:
            yield f"{gate.gate}: {_plain(counts_of(gate, check.baseline))}"
            for verdict in gate.images:
                subject = f"{gate.gate}: {_plain(verdict.image)}"
                if verdict.passed:
                    yield f"{subject} passes all of them"
                if verdict.failure is not None:
                    yield f"{subject} **failed**: {_plain(verdict.failure)}"
                for lost in verdict.regressions:
                    yield f"{subject} **fails** {_plain(lost.line)}"
    for control in report.controls:
        of = f"the control of {_plain(control.image)} ({control.kind})"
        if not control.passed:
            yield f"**{of} failed**"
        elif control.undecided:
            yield f"{of} had not enough boots to say anything"
    for line in disagreement_lines(report).shown:
        yield f"main metrics disagree: {_plain(f'{line.image}, {line.where}: {line.text}')}"
    for warning in report.warnings:
        yield f"warning: {_plain(warning)}"


def _comparisons(report: Report) -> str:
    """Cases against cases, collapsed."""
    lines = [
        _plain(f"- {one.title}, {one.image}, {one.metric}: {one.result}")
        for one in comparison_lines(report).shown
    ]
    return _collapsed("Case against case", lines) if lines else ""


def _cases(report: Report, image: Image) -> str:
    """The table of an image's cases, collapsed."""
    cases = {(c.suite, c.case, c.metric): c for c in report.cases if c.image == image.name}
    measured = {metric for _, _, metric in cases}
    shown = [metric for metric in MAIN if metric.name in measured]
    if not shown:
        return ""
    names = dict.fromkeys((suite, case) for suite, case, _ in cases)
    compared = report.baseline is not None
    rows = []
    for suite, case in names:
        found = [cases.get((suite, case, metric.name)) for metric in shown]
        cells = [
            _change(row, metric) if compared else amount(row.value if row else None)
            for row, metric in zip(found, shown, strict=True)
        ]
        rows.append(_row(_plain(f"{suite}/{case}"), *cells))
    if compared:
        head = _head("case", *(metric.title for metric in shown))
        title = f"{image.name} against {report.baseline} in {len(names)} cases"
        return _collapsed(title, [*head, *rows, "", _LEGEND])
    kinds = {row.metric: f"{row.kind}*, {row.unit}" for row in cases.values()}
    head = _head("case", *(f"{metric.title}, *{kinds[metric.name]}" for metric in shown))
    return _collapsed(f"{image.name} in {len(names)} cases", [*head, *rows])


def _collapsed(title: str, lines: Sequence[str]) -> str:
    # In a block that begins with a tag, a backslash is a character like others.
    summary = f"<details><summary>{escape(_line(title))}</summary>"
    return "\n".join([summary, "", *lines, "", "</details>"])


def _change(row: CaseRow | SummaryRow | None, metric: Metric) -> str:
    """A change, and for a mean its interval."""
    if row is None:
        return ""
    less = less_word(metric.name)
    if isinstance(row, CaseRow):
        return f"{SIGNS[row.verdict]} {relative(row.reduction_percent, less)}"
    change = f"{SIGNS[row.verdict]} {relative(row.geomean_reduction_percent, less)}"
    if row.interval_method == "none":
        return change
    return f"{change} ({relative_interval(row.reduction_interval_percent, less)})"


def _head(*titles: str) -> tuple[str, str]:
    return _row(*titles), "|---" * len(titles) + "|"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Foreign text in one line, of which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>&|~#])", r"\\\1", _line(text))


def _line(text: str) -> str:
    return printable(" ".join(text.split()))
