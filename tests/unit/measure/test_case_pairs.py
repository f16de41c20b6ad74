"""Two cases against each other on one image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import pytest

from mepof.measure.case_pairs import CasePair, PairRow, own_pairs, pair_rows
from mepof.measure.measurement import (
    Boot,
    CaseMeasurement,
    Counted,
    Device,
    Evaluation,
    Measurement,
    Modelled,
    ModelledSide,
    SizeBytes,
    Unsupported,
)
from mepof.measure.quantities import QUANTITIES
from mepof.suite import comparison

TCG = Device(name="qemu", accel="tcg", cpu="max", mode="icount")
HARDWARE = Device(name="prepared", accel="hardware", cpu="zen4")
OPERATIONS = 10
# Student's t of 95 % with two degrees of freedom.
T2 = 4.302653


def side(cycles: float, misses: int) -> ModelledSide:
    return ModelledSide(events={"dtlb_misses": misses}, cycles={"data": cycles})


def case(
    name: str,
    kernel: int | None,
    user: int | None,
    *,
    cycles: tuple[float, float] | None = None,
    misses: tuple[int, int] = (0, 0),
    counted: Mapping[str, int] | None = None,
) -> CaseMeasurement:
    """A case with these totals; cycles and misses are those of the kernel and of the user."""
    return CaseMeasurement(
        suite="pages",
        case=name,
        metric_group="pages",
        operations=OPERATIONS,
        check="ok",
        kernel_instructions=kernel,
        user_instructions=user,
        kernel_taken_branches=kernel,
        user_taken_branches=user,
        guest_nanoseconds=5000,
        modelled=Modelled(
            core="zen4", kernel=side(cycles[0], misses[0]), user=side(cycles[1], misses[1])
        )
        if cycles
        else None,
        counted=Counted(
            counters="zen4", operations=OPERATIONS, whole_program=False, figures=dict(counted)
        )
        if counted
        else None,
    )


def image(
    boots: Sequence[Sequence[CaseMeasurement]],
    *,
    device: Device = TCG,
    self_check: str = "passed",
    unsupported: tuple[Unsupported, ...] = (),
) -> Measurement:
    return Measurement(
        image="plain",
        digest="0" * 64,
        device=device,
        booted=True,
        self_check=self_check,
        size_bytes=SizeBytes(text=1, image=1),
        boots=tuple(
            Boot(seed=seed, cases=tuple(cases), unsupported=unsupported)
            for seed, cases in enumerate(boots)
        ),
    )


def pair(by: str, *metrics: str, event: str | None = None, suite: str | None = None) -> CasePair:
    return CasePair.model_validate(
        {
            "title": "4k against 2m",
            "first": ("pages", "walk-4k"),
            "second": ("pages", "walk-2m"),
            "by": by,
            "metrics": metrics,
            "event": event,
            "suite": suite,
        }
    )


def rows(asked: CasePair, measured: Measurement) -> tuple[PairRow, ...]:
    return pair_rows([asked], Evaluation(images=(measured,)))


def both(first: tuple[int, int], second: tuple[int, int]) -> list[CaseMeasurement]:
    return [case("walk-4k", *first), case("walk-2m", *second)]


THREE = image(
    [both((300, 100), (100, 100)), both((500, 100), (100, 100)), both((700, 100), (100, 100))]
)


def test_every_quantity_that_suites_can_name_is_measured() -> None:
    assert tuple(QUANTITIES) == comparison.QUANTITIES


def test_a_ratio_is_that_of_the_geometric_means() -> None:
    (row,) = rows(pair("ratio", "instructions"), THREE)
    assert row.kernel is not None and row.user is not None
    assert (row.kind, row.native, row.boots, row.reason) == ("counted", False, 3, None)
    assert row.both.first == pytest.approx((40 * 60 * 80) ** (1 / 3))
    assert row.both.second == 20
    assert row.both.value == pytest.approx((2 * 3 * 4) ** (1 / 3))
    assert row.kernel.value == pytest.approx((3 * 5 * 7) ** (1 / 3))
    assert (row.user.value, row.user.interval) == (1.0, (1.0, 1.0))
    assert row.both.interval is not None and row.both.value is not None
    low, high = row.both.interval
    # In logarithms, the interval is symmetric.
    assert low * high == pytest.approx(row.both.value**2)
    assert low < 2 and high > 4


def test_a_difference_has_the_t_interval_of_the_boots_values() -> None:
    (row,) = rows(pair("difference", "instructions"), THREE)
    # 20, 40 and 60 more per operation.
    assert (row.both.first, row.both.second, row.both.value) == (60, 20, 40)
    half = T2 * 20 / sqrt(3)
    assert row.both.interval == pytest.approx((40 - half, 40 + half))
    assert row.unit == "instructions/operation"
    assert row.user is not None
    assert (row.user.value, row.user.interval) == (0, (0, 0))


def test_one_boot_has_no_interval() -> None:
    one = image([both((300, 100), (100, 100))])
    for by in ("ratio", "difference"):
        (row,) = rows(pair(by, "instructions"), one)
        assert row.both.value == {"ratio": 2, "difference": 20}[by]
        assert row.both.interval is None


def walk(cycles: float, misses: int) -> list[CaseMeasurement]:
    return [
        case("walk-4k", 0, 100, cycles=(0.0, cycles), misses=(1, misses)),
        case("walk-2m", 0, 100, cycles=(0.0, 500.0), misses=(1, 0)),
    ]


def test_an_event_costs_the_difference_of_the_cases_by_the_difference_in_events() -> None:
    measured = image([walk(850.0, 10), walk(860.0, 10)])
    (row,) = rows(pair("per-event", event="dtlb_misses"), measured)
    assert (row.metric, row.event, row.kind) == ("cycles", "dtlb_misses", "modelled")
    assert row.both.value == pytest.approx(35.5)
    assert (row.both.first, row.both.second) == (85.5, 50)
    assert row.both.first_events == pytest.approx(1.1)
    assert row.both.second_events == pytest.approx(0.1)
    assert row.both.interval is not None
    # The kernel has the same events in both cases, so its part has no cost of one.
    assert row.kernel is not None
    assert (row.kernel.value, row.reason) == (None, None)


def test_instructions_are_compared_by_default_and_cycles_where_they_are_known() -> None:
    assert [row.metric for row in rows(pair("ratio"), THREE)] == ["instructions"]
    modelled = image([walk(850.0, 10)])
    assert [row.metric for row in rows(pair("ratio"), modelled)] == ["instructions", "cycles"]


def test_a_division_by_zero_has_a_reason_and_no_value() -> None:
    measured = image([walk(850.0, 10)])
    without = [case("walk-4k", 1, 1, cycles=(1.0, 9.0)), case("walk-2m", 1, 1, cycles=(1.0, 1.0))]
    (row,) = rows(pair("ratio", "dtlb_misses"), image([*[walk(850.0, 10)], without]))
    assert (row.both.value, row.reason) == (
        *(None, "no ratio: pages/walk-4k has no data TLB misses in a boot"),
    )
    assert row.both.first == pytest.approx(0.55)
    (row,) = rows(pair("per-event", event="dtlb_misses"), image([without]))
    assert row.reason == "both cases have as many data TLB misses in a boot"
    assert rows(pair("difference", "dtlb_misses"), measured)[0].both.value == 1


def test_what_was_not_measured_has_a_reason() -> None:
    def reason(measured: Measurement, *metrics: str) -> str | None:
        (row,) = rows(pair("ratio", *(metrics or ("instructions",))), measured)
        assert row.both.first is row.both.value is None
        return row.reason

    assert reason(THREE, "cycles") == "no figure of cycles"
    assert reason(THREE, "latency") == "no figure of latency"
    alone = [case("walk-4k", 1, 1)]
    assert reason(image([alone])) == "plain did not run pages/walk-2m"
    needs = Unsupported(suite="pages", case="walk-2m", needs="CONFIG_TRANSPARENT_HUGEPAGE")
    assert reason(image([alone], unsupported=(needs,))) == (
        "plain cannot run pages/walk-2m: CONFIG_TRANSPARENT_HUGEPAGE is missing"
    )
    apart = image([alone, [case("walk-2m", 1, 1)]])
    assert reason(apart) == "no boot of plain ran both cases"
    assert reason(image([both((1, 1), (1, 1))], self_check="pipe: 1")) == (
        "plain failed its self-check"
    )


def test_a_pmu_that_counted_the_kernel_alone_compares_the_kernel() -> None:
    def counted(name: str, cycles: int) -> CaseMeasurement:
        return case(name, None, None, counted={"kernel_cycles": cycles})

    measured = image([[counted("walk-4k", 300), counted("walk-2m", 100)]], device=HARDWARE)
    (row,) = rows(pair("ratio", "cycles"), measured)
    assert (row.kind, row.native, row.reason) == ("counted", True, None)
    assert row.shown is row.kernel
    assert row.shown.value == pytest.approx(3)
    assert row.both.first is None


def test_suites_compare_what_was_measured_and_are_silent_about_the_rest() -> None:
    evaluation = Evaluation(images=(image([walk(850.0, 10)]),))
    own = own_pairs(evaluation)
    assert {p.suite for p in own} == {"pages"}
    assert {(p.first[1], p.second[1]) for p in own} == {("walk-4k", "walk-2m")}
    assert {p.by for p in own} == {"difference", "per-event"}
    assert all(row.reason is None for row in pair_rows(own, evaluation))
    # No core was modelled.
    assert own_pairs(Evaluation(images=(THREE,))) == own
    assert pair_rows(own, Evaluation(images=(THREE,))) == ()
