"""The cases whose costs are compared and averaged."""

from __future__ import annotations

from report.samples import measurement

from mepof.measure.comparison import Build, rows_of, totals_of
from mepof.measure.measurement import CaseMeasurement, Measurement
from mepof.suite.cases import cases_of, is_control


def with_controls(image: Measurement, interrupts: int) -> Measurement:
    """An image's boots, each with the control `sieve` and that number of interrupts."""
    sieve = CaseMeasurement(
        suite="compute",
        case="sieve",
        metric_group="compute",
        operations=60,
        check="ok",
        kernel_instructions=5_000 * interrupts,
        user_instructions=51_000_000,
        kernel_taken_branches=600 * interrupts,
        user_taken_branches=11_000_000,
        guest_nanoseconds=51_000_000 + 5_000 * interrupts,
    )
    boots = tuple(boot.model_copy(update={"cases": (*boot.cases, sieve)}) for boot in image.boots)
    return image.model_copy(update={"boots": boots})


def test_kernel_metrics_leave_out_controls() -> None:
    plain = [Build((measurement("plain"),))]
    opt = [Build((measurement(factors=(0.9,) * 5),))]
    with_plain = [Build((with_controls(measurement("plain"), 12),))]
    with_opt = [Build((with_controls(measurement(factors=(0.9,) * 5), 24),))]
    rows = rows_of(with_plain, with_opt)
    assert {row.metric.name for row in rows if row.case.control} == {
        "user_instructions",
        "guest_time",
    }
    for alone, together in zip(totals_of(rows_of(plain, opt)), totals_of(rows), strict=True):
        assert alone.metric is together.metric
        if not alone.metric.control:
            assert alone == together


def test_the_metric_that_is_a_control_is_averaged_over_all_cases() -> None:
    images = [[Build((with_controls(measurement(name), 12),))] for name in ("plain", "opt")]
    totals = {total.metric.name: total for total in totals_of(rows_of(*images))}
    assert len(totals["user_instructions"].cases) == len(totals["guest_time"].cases) + 1


def test_controls_are_cases_that_compute_in_user_space() -> None:
    assert all(case.control for case in cases_of(["compute"]))
    assert {case.name for case in cases_of(["unixbench"]) if case.control} == {"dhry-1", "whet-1"}
    assert not any(case.control for case in cases_of([]))
    assert not is_control("no-such-suite", "sieve")
