"""Comparison of measurements: every case in every metric, and the geometric means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mepof.measure.measurement import Evaluation, Measurement
from mepof.measure.metrics import METRICS, Kind, Metric
from mepof.statistics import Comparison, Unit, compare, enough, log_costs, mean_over_cases
from mepof.suite.cases import is_control

Costs = dict[Unit, float]


@dataclass(frozen=True)
class CaseName:
    """A case: its suite, its name there, and its group, which is a metric of G4."""

    suite: str
    case: str
    group: str

    @property
    def control(self) -> bool:
        """Whether no kernel can change its cost; a change shows an error of the evaluation."""
        return is_control(self.suite, self.case)


@dataclass(frozen=True)
class Build:
    """The measurements of one build of an image."""

    measurements: tuple[Measurement, ...]

    @property
    def sound(self) -> bool:
        """Whether all its measurements are sound."""
        return all(m.sound for m in self.measurements)


@dataclass(frozen=True)
class Row:
    """One case in one metric.

    Attributes:
        baseline: cost per operation in every boot; empty if nothing was counted.
        value: likewise, of the image.
        comparison: None if the two cannot be compared.
    """

    metric: Metric
    kind: Kind
    case: CaseName
    baseline: Costs
    value: Costs
    comparison: Comparison | None


@dataclass(frozen=True)
class Total:
    """The comparison of the geometric means over cases, in one metric."""

    metric: Metric
    kind: Kind
    cases: tuple[CaseName, ...]
    comparison: Comparison


def baseline_builds(evaluation: Evaluation) -> tuple[Build, ...]:
    """The baseline's builds: the one that is compared, with all its boots, and the relinked.

    One that is the same image as another is left out: its boots would count twice.
    """
    first = evaluation.images[0]
    same = (evaluation.same_build,) if evaluation.same_build else ()
    builds = {first.digest: Build((first, *same))}
    for m in evaluation.relinked:
        if m.sound:
            builds.setdefault(m.digest, Build((m,)))
    return tuple(builds.values())


def rows_of(
    baseline: Sequence[Build], image: Sequence[Build], *, metrics: Sequence[Metric] = METRICS
) -> list[Row]:
    """Compare every case of an image with the baseline, in some metrics.

    Metrics of the kernel leave out controls, whose only kernel work is a few timer interrupts.

    Args:
        baseline: its builds; empty if there is none to compare with.
        image: its builds.
    """
    comparable = bool(baseline) and all(build.sound for build in (*baseline, *image))
    device = image[0].measurements[0].device
    rows: list[Row] = []
    for metric in metrics:
        theirs, ours = _costs(metric, baseline), _costs(metric, image)
        for name in (n for n in {**theirs, **ours} if not (n.control and metric.of_kernel)):
            base, value = theirs.get(name, {}), ours.get(name, {})
            found = compare(log_costs(base), log_costs(value)) if comparable else None
            rows.append(Row(metric, metric.kind(device), name, base, value, found))
    return rows


def totals_of(
    rows: Sequence[Row],
    chosen: Callable[[CaseName], bool] = lambda name: True,
    layouts: Sequence[Row] = (),
) -> list[Total]:
    """The geometric mean over the cases that could be compared, in every metric.

    Controls are left out, since they would draw the mean towards no change, except from a metric
    that is a control itself.

    Args:
        chosen: whether a case is part of the mean.
        layouts: of an image in several builds, whose differences hold for the images compared,
            of which there is one build each. Without one of the cases there is no comparison.
    """
    builds = {(row.metric.name, row.case): log_costs(row.value) for row in layouts}
    totals: list[Total] = []
    for metric in METRICS:
        used = [
            row
            for row in rows
            if row.metric is metric
            and row.comparison
            and (metric.control or not row.case.control)
            and chosen(row.case)
        ]
        spread = mean_over_cases([builds.get((metric.name, r.case), {}) for r in used])
        if layouts and not spread:
            continue
        found = compare(
            mean_over_cases([log_costs(r.baseline) for r in used]),
            mean_over_cases([log_costs(r.value) for r in used]),
            spread,
        )
        if found is not None:
            totals.append(Total(metric, used[0].kind, tuple(r.case for r in used), found))
    return totals


def precise(evaluation: Evaluation) -> bool:
    """Whether every comparison is precise enough, or there is nothing to compare."""
    others = evaluation.images[1:]
    if evaluation.why_incomparable is not None or not others:
        return True
    builds = baseline_builds(evaluation)
    comparisons: list[Comparison | None] = []
    for image in others:
        rows = rows_of(builds, [Build((image,))])
        # As many as the correction of their verdicts counts.
        rows = [row for row in rows if not row.metric.explains]
        comparisons += [row.comparison for row in rows]
        comparisons += [total.comparison for total in totals_of(rows)]
    return enough(comparisons, evaluation.precision_percent)


def _costs(metric: Metric, builds: Sequence[Build]) -> dict[CaseName, Costs]:
    """Cost per operation of every case by boot, if the device could measure it."""
    found: dict[CaseName, Costs] = {}
    for number, build in enumerate(builds):
        for boot in (boot for m in build.measurements for boot in m.boots):
            for case in boot.cases:
                cost = metric.cost(case)
                if cost is not None:
                    name = CaseName(case.suite, case.case, case.metric_group)
                    found.setdefault(name, {})[Unit(number, boot.seed)] = cost
    return found
