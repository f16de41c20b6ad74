"""What a reader must know before believing the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mepof.measure.measurement import Measurement
from mepof.measure.metrics import METRICS
from mepof.report.model import CaseRow, Control, SummaryRow

CONTROL_LIMIT_PERCENT = 1.0
"""A control metric that moves by more means that the images did not do the same work."""

_MAY_BE_NONE = {metric.name for metric in METRICS if metric.may_be_none}


def warnings_of(
    measurements: Sequence[Measurement],
    summary: Sequence[SummaryRow],
    cases: Sequence[CaseRow],
    controls: Sequence[Control],
) -> list[str]:
    """Everything to warn of, besides which images failed."""
    found: list[str] = []
    first = measurements[0]
    for m in measurements:
        lacking = unsupported_by(m)
        for needs in dict.fromkeys(lacking.values()):
            without = ", ".join(case for case, need in lacking.items() if need == needs)
            found.append(f"{m.image} cannot run {without}: not without {needs}")
    if len(measurements) > 1 and not first.sound:
        found.append(f"nothing is compared, because the baseline {first.image} is not sound")
    found += _of_controls(controls, first)
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
        found += _of_slower_cases(m, first, summary, rows)
        found += _of_few_boots(m, summary)
        found += _of_other_work(m, first, rows)
    return found


def unsupported_by(measurement: Measurement) -> dict[str, str]:
    """What each case needs that the image cannot run, in the order of the cases."""
    return {
        f"{case.suite}/{case.case}": case.needs
        for boot in measurement.boots
        for case in boot.unsupported
    }


def _of_controls(controls: Sequence[Control], first: Measurement) -> Iterator[str]:
    for control in controls:
        what = "booted with other seeds" if control.kind == "same build" else "relinked"
        if not (control.booted and control.self_check == "passed"):
            yield f"{control.image}, {what} as a control, is not sound: {control.self_check}"
            continue
        if control.kind == "relinked" and control.digest == first.digest:
            yield f"{control.image}, {what} as a control, is the same image: no layout was varied"
        differing = [
            f"{c.suite}/{c.case} ({c.improvement_percent:+.2f} % {c.metric.replace('_', ' ')})"
            for c in control.cases
            if c.verdict in ("faster", "slower")
        ]
        differing += [
            f"the mean ({s.geomean_improvement_percent:+.2f} % {s.metric.replace('_', ' ')})"
            for s in control.summary
            if s.verdict in ("faster", "slower")
        ]
        if not differing:
            continue
        meaning = (
            "differences of that size are no proof of another"
            if control.kind == "same build"
            else "that is what layout alone does"
        )
        yield (f"{control.image} differs from itself, {what}, in {', '.join(differing)}: {meaning}")


def _of_slower_cases(
    m: Measurement, first: Measurement, summary: Sequence[SummaryRow], rows: Sequence[CaseRow]
) -> Iterator[str]:
    """What pays for a mean that is not slower, in the metric of the result."""
    result = next((s for s in summary if s.image == m.image), None)
    if result is None or result.verdict == "slower":
        return
    slower = [c for c in rows if c.metric == result.metric and c.verdict == "slower"]
    slower.sort(key=lambda c: c.improvement_percent or 0.0)
    if not slower:
        return
    told = ", ".join(f"{c.suite}/{c.case} ({c.improvement_percent:+.2f} %)" for c in slower)
    ran = [c.trained for c in slower]
    trained = ", none of which the training ran" if set(ran) == {False} else ""
    yield f"{m.image} is slower than {first.image} in {told}{trained}"


def _of_few_boots(m: Measurement, summary: Sequence[SummaryRow]) -> Iterator[str]:
    totals = [s for s in summary if s.image == m.image]
    # Events of a core are not waited for.
    open_ones = [
        s.metric for s in totals if s.verdict == "not enough data" and s.metric not in _MAY_BE_NONE
    ]
    if not totals or open_ones:
        names = ", ".join(open_ones)
        yield (
            f"{m.image} was not booted often enough for a verdict"
            + (f" on {names}" if names else "")
            + "; `set repetitions` asks for more boots"
        )


def _of_other_work(m: Measurement, first: Measurement, rows: Sequence[CaseRow]) -> Iterator[str]:
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
            yield (
                f"{m.image} did not do the same work as {first.image}: "
                f"its {metric.title.lower()} moved in {', '.join(moved)}"
            )
