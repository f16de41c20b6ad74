"""Geometric means as marks of a forest plot."""

from __future__ import annotations

from mepof.report.metrics import less_word
from mepof.report.model import SummaryRow
from mepof.report.plots.forest import Estimate
from mepof.report.views.image_set import ImageSet


def mean_estimate(row: SummaryRow, image_set: ImageSet) -> Estimate:
    """The mark of a geometric mean."""
    return Estimate(
        image_set.numbers[row.image],
        row.geomean_reduction_percent,
        row.reduction_interval_percent,
        row.verdict,
        less=less_word(row.metric),
    )
