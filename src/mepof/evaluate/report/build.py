"""From measurements to a report: a pure function of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mepof.errors import InputError
from mepof.evaluate.measurement import METRICS, Measurement, Metric
from mepof.evaluate.report.method import method_of
from mepof.evaluate.report.model import (
    CaseRow,
    Image,
    Phase,
    ProfileSummary,
    Provenance,
    Report,
    SummaryRow,
)
from mepof.evaluate.statistics import Seed, compare, log_ratios, mean_cost, mean_over_cases

CONTROL_LIMIT_PERCENT = 1.0
"""A control metric that moves by more means that the images did not do the same work."""

Costs = Mapping[Seed, float]
_MAY_BE_NONE = {metric.name for metric in METRICS if metric.may_be_none}


@dataclass(frozen=True)
class CaseName:
    """Which case: its suite, its name there, and G4's group that it belongs to."""

    suite: str
    case: str
    group: str


def build_report(
    measurements: Sequence[Measurement],
    phases: Sequence[Phase],
    profile: ProfileSummary | None,
    provenance: Provenance,
    *,
    engine_share_percent: float | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Compare every image with the first and put all that is known together.

    Args:
        measurements: of the images, the baseline first; one alone is reported uncompared.
        phases: steps in the order in which they finished.
        profile: None if no profile was made.
        notes: what is to be known of the builds, told with the warnings.

    Raises:
        InputError: there is no image, or two have one name.
    """
    if not measurements:
        raise InputError("there is no image to report on")
    names = [m.image for m in measurements]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two images are called `{name}`", "give each a name of its own")

    baseline = measurements[0] if len(measurements) > 1 else None
    summary: list[SummaryRow] = []
    cases: list[CaseRow] = []
    for measurement in measurements[1:] or measurements:
        for metric in METRICS:
            rows, total = _compare(metric, baseline, measurement)
            cases += rows
            if total is not None:
                summary.append(total)
    return Report(
        baseline=baseline.image if baseline else None,
        images=tuple(_image(m, m is baseline) for m in measurements),
        summary=tuple(summary),
        cases=tuple(cases),
        phases=tuple(phases),
        profile=profile,
        provenance=provenance,
        warnings=(*notes, *_warnings(measurements, summary, cases)),
        method=method_of(measurements),
        engine_share_percent=engine_share_percent,
    )


def _compare(
    metric: Metric, baseline: Measurement | None, measurement: Measurement
) -> tuple[list[CaseRow], SummaryRow | None]:
    """The rows of one image in one metric, and their geometric mean if there is one."""
    kind = metric.kind(measurement.device)
    ours = _costs(metric, measurement)
    theirs = _costs(metric, baseline) if baseline else {}
    comparable = baseline is not None and baseline.sound and measurement.sound
    rows: list[CaseRow] = []
    compared: list[dict[Seed, float]] = []
    for name in {**theirs, **ours}:
        value, base = ours.get(name, {}), theirs.get(name, {})
        ratios = log_ratios(base, value) if comparable else {}
        if ratios:
            compared.append(ratios)
            # The costs that are shown are those that the ratio is of.
            value, base = ({s: costs[s] for s in ratios} for costs in (value, base))
        result = compare(ratios)
        rows.append(
            CaseRow(
                image=measurement.image,
                suite=name.suite,
                case=name.case,
                group=name.group,
                metric=metric.name,
                kind=kind,
                baseline=mean_cost([*base.values()]) if base else None,
                value=mean_cost([*value.values()]) if value else None,
                unit=metric.unit,
                improvement_percent=result.improvement_percent if result else None,
                interval_percent=result.interval_percent if result else None,
                verdict=result.verdict if result else "not enough data",
                boots=len(ratios) if comparable else len(value),
            )
        )
    overall = compare(mean_over_cases(compared))
    if overall is None:
        return rows, None
    return rows, SummaryRow(
        image=measurement.image,
        metric=metric.name,
        kind=kind,
        geomean_improvement_percent=overall.improvement_percent,
        interval_percent=overall.interval_percent,
        verdict=overall.verdict,
        cases=len(compared),
        boots=overall.pairs,
    )


def _costs(metric: Metric, measurement: Measurement) -> dict[CaseName, dict[Seed, float]]:
    """Cost per operation of every case by seed, where the device could count it."""
    found: dict[CaseName, dict[Seed, float]] = {}
    for boot in measurement.boots:
        for case in boot.cases:
            cost = metric.cost(case)
            if cost is not None:
                name = CaseName(case.suite, case.case, case.metric_group)
                found.setdefault(name, {})[boot.seed] = cost
    return found


def _image(measurement: Measurement, is_baseline: bool) -> Image:
    return Image(
        name=measurement.image,
        digest=measurement.digest,
        baseline=is_baseline,
        booted=measurement.booted,
        self_check=measurement.self_check,
        size_bytes=measurement.size_bytes,
        sections=measurement.sections,
        device=measurement.device,
        boots=len(measurement.boots),
    )


def _warnings(
    measurements: Sequence[Measurement], summary: Sequence[SummaryRow], cases: Sequence[CaseRow]
) -> list[str]:
    """What a reader must know before believing the numbers, besides which images failed."""
    found: list[str] = []
    first = measurements[0]
    if len(measurements) > 1 and not first.sound:
        found.append(f"nothing is compared, because the baseline {first.image} is not sound")
    for m in measurements[1:]:
        if not (first.sound and m.sound):
            continue
        if m.device != first.device:
            found.append(f"{m.image} was not measured on the same device as {first.image}")
        rows = [c for c in cases if c.image == m.image]
        missing = sorted(
            {
                f"{c.suite}/{c.case}"
                for c in rows
                if c.improvement_percent is None and c.metric not in _MAY_BE_NONE
            }
        )
        if missing:
            found.append(
                f"{m.image} could not be compared in every metric of {', '.join(missing)}; "
                "the geometric mean is without what is missing"
            )
        totals = [s for s in summary if s.image == m.image]
        if not totals or min(s.boots for s in totals) < 2:
            found.append(
                f"{m.image} has fewer than two boots with the same seeds as {first.image}: "
                "that is not enough for an interval"
            )
        for metric in METRICS:
            moved = [
                f"{c.suite}/{c.case} ({c.improvement_percent:+.2f} %)"
                for c in rows
                if metric.control
                and c.metric == metric.name
                and c.improvement_percent is not None
                and abs(c.improvement_percent) > CONTROL_LIMIT_PERCENT
            ]
            if moved:
                found.append(
                    f"{m.image} did not do the same work as {first.image}: "
                    f"its {metric.title.lower()} moved in {', '.join(moved)}"
                )
    return found
