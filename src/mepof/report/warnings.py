"""What a reader must know before relying on the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mepof.measure.comparison import baseline_builds
from mepof.measure.measurement import Evaluation, Measurement
from mepof.measure.metrics import METRICS
from mepof.report.metrics import less_word
from mepof.report.model import CaseRow, Control, SummaryRow
from mepof.report.text import relative

CONTROL_LIMIT_PERCENT = 1.0
"""A control metric that changes by more means that the images did not do the same work."""

#: Relinked builds from which on layouts can be judged by.
_MIN_LAYOUTS = 3

_EXPLAINING = {metric.name for metric in METRICS if metric.explains}


def warnings_of(
    evaluation: Evaluation,
    summary: Sequence[SummaryRow],
    cases: Sequence[CaseRow],
    controls: Sequence[Control],
    repetitions: str,
) -> list[str]:
    """All warnings, except that an image failed.

    Args:
        repetitions: how a user says how often images are booted.
    """
    found: list[str] = []
    measurements = evaluation.images
    first, incomparable = measurements[0], evaluation.why_incomparable
    for m in measurements:
        unsupported = unsupported_by(m)
        for needs in dict.fromkeys(unsupported.values()):
            without = ", ".join(case for case, need in unsupported.items() if need == needs)
            found.append(f"{m.image} cannot run {without}: {needs} is missing")
    if len(measurements) > 1 and incomparable is not None:
        found.append(f"nothing is compared with the baseline {first.image}: {incomparable}")
    found += _of_controls(controls, first)
    for m in measurements[1:]:
        if incomparable is not None or not m.sound:
            continue
        if m.device != first.device:
            found.append(f"{m.image} was not measured on the same device as {first.image}")
        rows = [c for c in cases if c.image == m.image]
        missing = sorted(
            {
                f"{c.suite}/{c.case}"
                for c in rows
                if c.improvement_percent is None and c.metric not in _EXPLAINING
            }
        )
        if missing:
            found.append(
                f"{m.image} could not be compared in every metric of {', '.join(missing)}; "
                "the geometric mean leaves out what is missing"
            )
        found += _of_rare_events(m, rows)
        found += _of_worse_cases(m, first, summary, rows)
        found += _of_little_data(m, evaluation, summary, repetitions)
        found += _of_other_work(m, first, rows)
    return found


def unsupported_by(measurement: Measurement) -> dict[str, str]:
    """What is missing for each case that the image cannot run, in the order of the cases."""
    return {
        f"{case.suite}/{case.case}": case.needs
        for boot in measurement.boots
        for case in boot.unsupported
    }


def _of_controls(controls: Sequence[Control], first: Measurement) -> Iterator[str]:
    layouts = {first.digest}
    for control in controls:
        what = "booted with other seeds" if control.kind == "same build" else "relinked"
        if not control.sound:
            yield f"{control.image}, {what} as a control, is not sound: {control.self_check}"
            continue
        if control.kind == "relinked":
            if control.digest in layouts:
                same = f"{control.image}, {what} as a control, is the same image"
                yield f"{same}: no layout was varied, and its boots do not count"
            layouts.add(control.digest)
        differing = [
            f"{c.suite}/{c.case} ({_change(c.reduction_percent, c.metric)})"
            for c in control.cases
            if c.verdict in ("faster", "slower")
        ]
        differing += [
            f"the mean ({_change(s.geomean_reduction_percent, s.metric)})"
            for s in control.summary
            if s.verdict in ("faster", "slower")
        ]
        if not differing:
            continue
        meaning = (
            "a difference of that size proves nothing about another image"
            if control.kind == "same build"
            else "that is what layout alone does"
        )
        yield f"{control.image} differs from itself, {what}, in {', '.join(differing)}: {meaning}"


def _of_rare_events(m: Measurement, rows: Sequence[CaseRow]) -> Iterator[str]:
    """Cases in which something occurs, but not in every boot, so that there is no ratio."""
    for name in (metric.name for metric in METRICS if metric.explains):
        left_out = [
            f"{c.suite}/{c.case}"
            for c in rows
            if c.metric == name
            and c.improvement_percent is None
            and None not in (c.baseline, c.value)
            and (c.baseline or c.value)
        ]
        if left_out:
            yield (
                f"the geometric mean of {name} of {m.image} leaves out {', '.join(left_out)}, "
                "in which there were none in a boot"
            )


def _change(reduction: float | None, metric: str) -> str:
    return f"{relative(reduction, less_word(metric))} {metric.replace('_', ' ')}"


def _of_worse_cases(
    m: Measurement, first: Measurement, summary: Sequence[SummaryRow], rows: Sequence[CaseRow]
) -> Iterator[str]:
    """Cases that cost more although the mean does not, in the metric of the result."""
    result = next((s for s in summary if s.image == m.image), None)
    if result is None or result.verdict == "slower":
        return
    worse = [c for c in rows if c.metric == result.metric and c.verdict == "slower"]
    worse.sort(key=lambda c: c.reduction_percent or 0.0)
    if not worse:
        return
    cases = ", ".join(f"{c.suite}/{c.case} ({relative(c.reduction_percent)})" for c in worse)
    trained = ", none of which is trained" if {c.trained for c in worse} == {False} else ""
    what = result.metric.replace("_", " ")
    yield f"{m.image} takes more {what} than {first.image} in {cases}{trained}"


def _of_little_data(
    m: Measurement, evaluation: Evaluation, summary: Sequence[SummaryRow], repetitions: str
) -> Iterator[str]:
    totals = [s for s in summary if s.image == m.image]
    if not totals:
        yield f"nothing of {m.image} could be compared with {evaluation.images[0].image}"
    undecided = [
        s.metric for s in totals if s.verdict == "not enough data" and s.metric not in _EXPLAINING
    ]
    if not undecided:
        return
    names = ", ".join(undecided)
    layouts = len(baseline_builds(evaluation)) - 1
    if not layouts:
        yield f"{m.image} was not booted often enough for a verdict on {names}; raise {repetitions}"
        return
    # Builds are the units: with two, no number of boots leaves more than one degree of freedom.
    more = max(_MIN_LAYOUTS, layouts + 1)
    also = f", or raise {repetitions}" if layouts >= _MIN_LAYOUTS else ""
    yield (
        f"too few layouts of {evaluation.images[0].image} were measured for a verdict on "
        f"{m.image} in {names}; write `set relinked {more}.` or more{also}"
    )


def _of_other_work(m: Measurement, first: Measurement, rows: Sequence[CaseRow]) -> Iterator[str]:
    for metric in METRICS:
        changed = [
            f"{c.suite}/{c.case} ({relative(c.reduction_percent, less_word(c.metric))})"
            for c in rows
            if metric.control
            and c.metric == metric.name
            and c.improvement_percent is not None
            and abs(c.improvement_percent) > CONTROL_LIMIT_PERCENT
        ]
        if changed:
            yield (
                f"{m.image} did not do the same work as {first.image}: "
                f"its {metric.title.lower()} changed in {', '.join(changed)}"
            )
