"""A geometric mean as a row of the report."""

from __future__ import annotations

from mepof.measure.comparison import Total
from mepof.report.model import SummaryRow
from mepof.statistics import Judged


def summary_row(image: str, total: Total, judged: Judged) -> SummaryRow:
    """The row of an image's geometric mean and its verdict."""
    found = total.comparison
    return SummaryRow(
        image=image,
        metric=total.metric.name,
        kind=total.kind,
        geomean_improvement_percent=found.improvement_percent,
        interval_percent=found.interval_percent,
        verdict=judged.verdict,
        cases=len(total.cases),
        boots=found.boots,
        baseline_boots=found.baseline_boots,
        interval_method=found.method,
        p_value=found.p_value,
        adjusted_p=judged.adjusted_p,
    )
