"""Where the main metrics disagree: one is better than the baseline's, another is worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mepof.report.metrics import MAIN
from mepof.report.model import CaseRow, Disagreement, SummaryRow
from mepof.statistics import Verdict

# What cases print restates their guest time.
_JUDGED = tuple(metric for metric in MAIN if not metric.printed)


def disagreements_of(
    summary: Sequence[SummaryRow], cases: Sequence[CaseRow]
) -> tuple[Disagreement, ...]:
    """The disagreements of each image: in its geometric means, then in its cases."""
    images = dict.fromkeys([*(row.image for row in summary), *(row.image for row in cases)])
    return tuple(one for image in images for one in _of_image(image, summary, cases))


def _of_image(
    image: str, summary: Sequence[SummaryRow], cases: Sequence[CaseRow]
) -> Iterator[Disagreement]:
    verdicts: dict[tuple[str | None, str | None], dict[str, Verdict]] = {}
    for total in summary:
        if total.image == image:
            verdicts.setdefault((None, None), {})[total.metric] = total.verdict
    for row in cases:
        if row.image == image:
            verdicts.setdefault((row.suite, row.case), {})[row.metric] = row.verdict
    for (suite, case), found in verdicts.items():
        better = tuple(m.name for m in _JUDGED if found.get(m.name) == "faster")
        worse = tuple(m.name for m in _JUDGED if found.get(m.name) == "slower")
        if better and worse:
            yield Disagreement(image=image, suite=suite, case=case, better=better, worse=worse)
