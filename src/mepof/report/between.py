"""Images against each other, where the baseline is not the only one to compare with."""

from __future__ import annotations

from itertools import combinations

from mepof.measure.comparison import Build, baseline_builds, rows_of, totals_of
from mepof.measure.measurement import Evaluation
from mepof.report.model import BetweenRow
from mepof.report.summary_row import summary_row
from mepof.statistics import judge


def between_images(evaluation: Evaluation) -> tuple[BetweenRow, ...]:
    """The geometric means of every sound image except the baseline against each one before it.

    Each is one build. If the baseline was relinked, its builds show by how much layout alone makes
    two of them differ.
    """
    sound = [each for each in evaluation.images[1:] if each.sound]
    builds = [build for build in baseline_builds(evaluation) if build.sound]
    layouts = rows_of((), builds) if len(builds) > 1 else ()
    found = [
        (reference.image, image.image, total)
        for reference, image in combinations(sound, 2)
        for total in totals_of(rows_of([Build((reference,))], [Build((image,))]), layouts=layouts)
    ]
    verdicts = judge([total.comparison for _, _, total in found], evaluation.precision_percent)
    return tuple(
        BetweenRow(**summary_row(image, total, judged).model_dump(), against=reference)
        for (reference, image, total), judged in zip(found, verdicts, strict=True)
    )
