"""A suite's index."""

from __future__ import annotations

import pytest
from report.samples import measurement

from mepof.measure.index import indices
from mepof.measure.measurement import Boot, CaseMeasurement, Measurement
from mepof.suite.cases import load_suite

SUITE = load_suite("unixbench")
ALONE = [case for case in SUITE.cases if case.metric == "unixbench"]


def measured(times: float, without: str = "") -> Measurement:
    """Two boots, in which each case is faster or slower than its baseline by this factor."""
    boots = tuple(
        Boot(
            seed=seed,
            cases=tuple(
                CaseMeasurement(
                    suite="unixbench",
                    case=case.name,
                    metric_group=case.metric,
                    operations=1_000_000,
                    check="ok",
                    kernel_instructions=1,
                    user_instructions=1,
                    kernel_taken_branches=1,
                    user_taken_branches=1,
                    guest_nanoseconds=round(
                        1e15 / ((case.baseline or 0) * (times if seed else 1 / times))
                    ),
                )
                for case in ALONE
                if case.name != without
            ),
        )
        for seed in (0, 1)
    )
    return measurement().model_copy(update={"boots": boots})


def test_the_index_of_the_baseline_is_ten() -> None:
    assert indices(measured(1)) == {"unixbench": pytest.approx(10, abs=0.01)}


def test_the_index_is_a_geometric_mean() -> None:
    assert indices(measured(8)) == {"unixbench": pytest.approx(10, abs=0.01)}


def test_a_missing_case_leaves_no_index() -> None:
    assert indices(measured(1, without="shell-1")) == {}


def test_suites_without_baselines_and_no_boots_have_no_index() -> None:
    assert indices(measurement()) == {}
    assert indices(measured(1).model_copy(update={"boots": ()})) == {}
