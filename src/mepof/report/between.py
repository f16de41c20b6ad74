"""Images against each other, where the baseline is not the only one to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from mepof.measure.comparison import Build, rows_of, totals_of
from mepof.measure.measurement import Measurement
from mepof.report.model import BetweenRow
from mepof.report.summary_row import summary_row
from mepof.statistics import judge


def between_images(
    measurements: Sequence[Measurement], precision_percent: float
) -> tuple[BetweenRow, ...]:
    """The geometric means of every sound image against each one before it.

    Args:
        measurements: of all images except the baseline.
    """
    sound = [each for each in measurements if each.sound]
    found = [
        (reference.image, measurement.image, total)
        for reference, measurement in combinations(sound, 2)
        for total in totals_of(rows_of([Build((reference,))], [Build((measurement,))]))
    ]
    verdicts = judge([total.comparison for _, _, total in found], precision_percent)
    return tuple(
        BetweenRow(**summary_row(image, total, judged).model_dump(), against=reference)
        for (reference, image, total), judged in zip(found, verdicts, strict=True)
    )
