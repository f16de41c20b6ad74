"""The figures that cases printed, and the modelled core's, as rows of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from mepof.measure.measurement import CaseMeasurement, Measurement
from mepof.measure.metrics import GUEST_TIME, METRICS
from mepof.pmu.core import core_names, load_core
from mepof.report.detail import Core, CoreCase, Figure

_NANOSECONDS = "_ns"
_MOVED = "bytes"
_TIME = next(metric for metric in METRICS if metric.name == GUEST_TIME)


def figures_of(measurements: Sequence[Measurement]) -> tuple[Figure, ...]:
    """The figures that the cases of sound images printed, in the order of the cases."""
    return tuple(figure for m in measurements if m.sound for figure in _figures(m))


def _figures(measurement: Measurement) -> Iterator[Figure]:
    # Cases measure latencies by the guest's clock, so they are of the same kind as its time.
    kind = _TIME.kind(measurement.device)
    for (suite, case), boots in _by_case(measurement).items():
        names = dict.fromkeys(name for boot in boots for name in boot.figures)
        for name in names:
            printed = [boot for boot in boots if name in boot.figures]
            figure, unit = name, ""
            values = [float(boot.figures[name]) for boot in printed]
            if name.endswith(_NANOSECONDS):
                figure, unit = name.removesuffix(_NANOSECONDS), "ns"
            elif name == _MOVED:
                timed = [boot for boot in printed if boot.guest_nanoseconds]
                figure, unit = "throughput", "bytes/s"
                values = [1e9 * b.figures[name] / b.guest_nanoseconds for b in timed]
            if any(values):
                yield Figure(
                    image=measurement.image,
                    suite=suite,
                    case=case,
                    figure=figure,
                    unit=unit,
                    kind=kind if unit else "counted",
                    value=median(values),
                    low=min(values),
                    high=max(values),
                    boots=len(values),
                )


def core_of(measurements: Sequence[Measurement]) -> Core | None:
    """The core that was modelled; None if none was. An evaluation models at most one."""
    for measurement in measurements:
        for boot in measurement.boots:
            for case in boot.cases:
                if case.modelled is not None:
                    name = case.modelled.core
                    known = name in core_names()
                    return Core(name=name, title=load_core(name).title if known else name)
    return None


def core_cases_of(measurements: Sequence[Measurement]) -> tuple[CoreCase, ...]:
    """The modelled core's figures for the cases of sound images."""
    return tuple(row for m in measurements if m.sound for row in _core_cases(m))


def _core_cases(measurement: Measurement) -> Iterator[CoreCase]:
    for (suite, case), boots in _by_case(measurement).items():
        sides = [(b.operations, b.modelled.kernel) for b in boots if b.modelled is not None]
        counted = [b.kernel_instructions / b.operations for b in boots if b.kernel_instructions]
        if sides and counted:
            first = sides[0][1]
            yield CoreCase(
                image=measurement.image,
                suite=suite,
                case=case,
                instructions=fmean(counted),
                events={
                    name: fmean(side.events[name] / operations for operations, side in sides)
                    for name in first.events
                },
                cycles={
                    name: fmean(side.cycles[name] / operations for operations, side in sides)
                    for name in first.cycles
                },
            )


def _by_case(measurement: Measurement) -> dict[tuple[str, str], list[CaseMeasurement]]:
    found: dict[tuple[str, str], list[CaseMeasurement]] = {}
    for boot in measurement.boots:
        for case in boot.cases:
            found.setdefault((case.suite, case.case), []).append(case)
    return found
