from __future__ import annotations

import doctest
from math import exp, log, sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.evaluate.statistics import compare, log_ratios, mean_cost, mean_over_cases

costs = st.floats(min_value=1, max_value=1000)
paired = st.lists(st.tuples(costs, costs), min_size=1, max_size=8)


def by_seed(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_the_documented_example_is_true() -> None:
    page = Path(__file__).parents[3] / "docs" / "statistics.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_a_tenth_less_cost_is_an_improvement_of_a_ninth() -> None:
    found = compare(log_ratios(by_seed([100.0, 200.0]), by_seed([90.0, 180.0])))
    assert found is not None
    assert found.improvement_percent == pytest.approx(100 / 9)
    assert found.interval_percent == pytest.approx((100 / 9, 100 / 9))
    assert found.verdict == "faster"


def test_the_interval_is_students_over_the_log_ratios() -> None:
    # By hand: mean 0.1, standard deviation 0.01, t(0.975, 2) = 4.302653 from the tables.
    found = compare({1: 0.09, 2: 0.10, 3: 0.11})
    assert found is not None
    half = 4.302653 * 0.01 / sqrt(3)
    assert found.improvement_percent == pytest.approx(100 * (exp(0.1) - 1))
    expected = (100 * (exp(0.1 - half) - 1), 100 * (exp(0.1 + half) - 1))
    assert found.interval_percent == pytest.approx(expected, rel=1e-6)
    assert found.pairs == 3


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.02, 0.02], "faster"),
        ([-0.02, -0.02], "slower"),
        ([0.0, 0.0], "no difference"),
        # Certain, but below the practical threshold of 0.1 %.
        ([0.0009, 0.0009], "no difference"),
        ([-0.0009, -0.0009], "no difference"),
        # Large on average, but the boots disagree.
        ([0.3, -0.1, 0.05], "no difference"),
        ([0.3], "not enough data"),
    ],
)
def test_the_verdict_needs_the_whole_interval_beyond_the_threshold(
    ratios: list[float], verdict: str
) -> None:
    found = compare(by_seed(ratios))
    assert found is not None
    assert found.verdict == verdict


def test_one_pair_has_an_estimate_and_no_interval() -> None:
    found = compare({7: log(2)})
    assert found is not None
    assert found.improvement_percent == pytest.approx(100)
    assert found.interval_percent == (found.improvement_percent, found.improvement_percent)


def test_nothing_to_compare_is_nothing() -> None:
    assert compare({}) is None
    assert mean_over_cases([]) == {}


def test_only_boots_of_the_same_seed_are_compared() -> None:
    assert log_ratios({1: 2.0, 2: 5.0}, {1: 1.0, 3: 7.0}) == {1: log(2)}


def test_a_cost_of_zero_has_no_ratio() -> None:
    assert log_ratios({1: 0.0, 2: 4.0, 3: 4.0}, {1: 1.0, 2: 0.0, 3: 4.0}) == {3: 0.0}
    assert mean_cost([0.0, 4.0]) == 2.0


def test_the_mean_over_cases_takes_the_seeds_that_all_cases_have() -> None:
    assert mean_over_cases([{1: 0.2, 2: 0.4}, {2: 0.2, 3: 0.1}]) == {2: pytest.approx(0.3)}


def test_the_mean_over_cases_is_the_geometric_mean() -> None:
    found = compare(mean_over_cases([{1: log(2), 2: log(2)}, {1: log(8), 2: log(8)}]))
    assert found is not None
    assert found.improvement_percent == pytest.approx(300)


@given(paired)
def test_an_image_does_not_differ_from_itself(pairs: list[tuple[float, float]]) -> None:
    same = by_seed([a for a, _ in pairs])
    found = compare(log_ratios(same, same))
    assert found is not None
    assert found.improvement_percent == 0
    assert found.verdict in ("no difference", "not enough data")


@given(paired)
def test_swapping_the_images_inverts_the_ratio_and_the_verdict(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = by_seed([x for x, _ in pairs]), by_seed([y for _, y in pairs])
    one, other = compare(log_ratios(a, b)), compare(log_ratios(b, a))
    assert one is not None
    assert other is not None

    product = (1 + one.improvement_percent / 100) * (1 + other.improvement_percent / 100)
    assert product == pytest.approx(1)
    swapped = {"faster": "slower", "slower": "faster"}
    assert other.verdict == swapped.get(one.verdict, one.verdict)


@given(paired, st.floats(min_value=1e-3, max_value=1e3))
def test_the_unit_of_the_cost_does_not_matter(
    pairs: list[tuple[float, float]], unit: float
) -> None:
    a, b = by_seed([x for x, _ in pairs]), by_seed([y for _, y in pairs])
    scaled = {s: v * unit for s, v in a.items()}, {s: v * unit for s, v in b.items()}
    one, other = compare(log_ratios(a, b)), compare(log_ratios(*scaled))
    assert one is not None
    assert other is not None
    assert other.improvement_percent == pytest.approx(one.improvement_percent, abs=1e-6)


@given(st.lists(st.tuples(costs, costs), min_size=2, max_size=8))
def test_the_estimate_is_the_ratio_of_the_mean_costs(pairs: list[tuple[float, float]]) -> None:
    a, b = by_seed([x for x, _ in pairs]), by_seed([y for _, y in pairs])
    found = compare(log_ratios(a, b))
    assert found is not None
    ratio = mean_cost([*a.values()]) / mean_cost([*b.values()])
    assert 1 + found.improvement_percent / 100 == pytest.approx(ratio)
    assert found.interval_percent[0] <= found.improvement_percent <= found.interval_percent[1]
