from __future__ import annotations

import doctest
import itertools
from itertools import pairwise
from math import isfinite, log, log1p
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mepof.statistics import (
    Comparison,
    Unit,
    builds_of,
    compare,
    enough,
    judge,
    log_costs,
    mean_cost,
    mean_over_cases,
    min_boots,
    narrow,
    outliers,
    ranks,
    reduction_percent,
)
from mepof.statistics.interval import bca_interval, difference, t_interval

costs = st.floats(min_value=1, max_value=1000)
boots = st.lists(costs, min_size=2, max_size=8)
# If they are far apart, the ends of the interval exceed the range of a percentage.
alike = st.lists(st.floats(min_value=100, max_value=110), min_size=3, max_size=8)


def units(*builds: list[float]) -> dict[Unit, float]:
    """Costs of boots by builds."""
    return {Unit(b, seed): c for b, build in enumerate(builds) for seed, c in enumerate(build)}


def compared(baseline: list[float], image: list[float]) -> Comparison:
    found = compare(log_costs(units(baseline)), log_costs(units(image)))
    assert found is not None
    return found


def verdict(baseline: list[float], image: list[float]) -> str:
    return judge([compared(baseline, image)], 1.0)[0].verdict


def test_the_documented_example_is_true() -> None:
    page = Path(__file__).parents[3] / "docs" / "statistics.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


# --- ratios


def test_a_tenth_less_cost_is_an_improvement_of_a_ninth() -> None:
    found = compared([100.0] * 4, [90.0] * 4)
    assert found.improvement_percent == pytest.approx(100 / 9)
    assert found.interval_percent == pytest.approx((100 / 9, 100 / 9))


def test_an_improvement_of_a_ninth_is_a_tenth_less() -> None:
    assert reduction_percent(100 / 9) == pytest.approx(10)
    assert reduction_percent(118.0) == pytest.approx(54.128, abs=1e-3)
    assert reduction_percent(-50.0) == pytest.approx(-100)
    assert [str(reduction_percent(zero)) for zero in (0.0, -0.0)] == ["0.0", "0.0"]


@given(st.lists(st.floats(min_value=-100, max_value=1e306), min_size=2, max_size=8))
def test_the_reduction_keeps_the_order_and_is_finite(improvements: list[float]) -> None:
    reductions = [reduction_percent(value) for value in sorted(improvements)]
    assert all(map(isfinite, reductions))
    assert all(low <= high * (1 + 1e-12) + 1e-9 for low, high in pairwise(reductions) if high >= 0)
    assert all(low <= high * (1 - 1e-12) + 1e-9 for low, high in pairwise(reductions) if high < 0)


def test_a_cost_of_zero_has_no_ratio_and_drops_no_boot() -> None:
    assert log_costs(units([1.0, 0.0, 2.0])) == {}
    assert compare({}, log_costs(units([1.0]))) is None
    assert mean_cost(units([0.0, 4.0])) == 2.0
    assert judge([None], 1.0)[0].verdict == "not enough data"


def test_the_mean_over_cases_takes_the_boots_in_which_all_ran() -> None:
    first = {Unit(0, 1): 0.2, Unit(0, 2): 0.4}
    second = {Unit(0, 2): 0.2, Unit(0, 3): 0.1}
    assert mean_over_cases([first, second]) == {Unit(0, 2): pytest.approx(0.3)}
    assert mean_over_cases([]) == {}


def test_builds_weigh_alike_however_often_each_was_booted() -> None:
    some = units([2.0, 2.0, 2.0], [8.0])
    assert builds_of(some) == ((2.0, 2.0, 2.0), (8.0,))
    assert mean_cost(some) == pytest.approx(4)


# --- intervals


def test_the_t_interval_is_welchs() -> None:
    a, b = [1.0, 1.2, 0.9, 1.4], [0.8, 1.0, 0.9, 0.7, 1.1]
    ours = t_interval(a, b)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert ours == pytest.approx((theirs.low, theirs.high))
    found = difference([a], [b])
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(ours)


def test_the_bca_interval_is_scipys_up_to_resampling_noise() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.lognormal(0, 0.2, 25), generator.lognormal(0.3, 0.3, 22)
    low, high = bca_interval(a.tolist(), b.tolist())
    theirs = stats.bootstrap(
        (a, b),
        lambda x, y, axis=-1: x.mean(axis) - y.mean(axis),
        method="BCa",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_many_boots_without_outliers_have_a_bca_interval() -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.normal(0, 0.01, 20).tolist() for _ in range(2))
    assert difference([a], [b]).method == "BCa"
    assert difference([a], [b]) == difference([a], [b])
    assert difference([a[:19]], [b]).method == "t"
    assert difference([[*a[:19], 0.5]], [b]).method == "t"


def test_boots_of_one_build_do_not_replace_builds() -> None:
    # Boots repeat exactly, layouts differ by 1 %: only builds show how certain the mean is.
    theirs = [[0.00] * 9, [0.01] * 9, [0.02] * 9]
    found = difference(theirs, [[0.0] * 9])
    assert found.estimate == pytest.approx(0.01)
    error = 0.01 * (1 / 3 + 1) ** 0.5
    assert found.between_builds == pytest.approx((error, 2))
    half = 4.302653 * error
    assert (found.low, found.high) == pytest.approx((0.01 - half, 0.01 + half), rel=1e-5)


def test_many_builds_are_resampled_by_build() -> None:
    generator = np.random.default_rng(1)

    def image() -> list[list[float]]:
        layouts = generator.normal(0, 0.01, 20)
        return [(layout + generator.normal(0, 0.001, 5)).tolist() for layout in layouts]

    first, second = image(), image()
    found = difference(first, second)
    assert found.method == "BCa"
    low, high = t_interval(*([float(np.mean(b)) for b in image] for image in (first, second)))
    assert found.high - found.low == pytest.approx(high - low, rel=0.15)


def test_one_boot_of_each_has_an_estimate_and_no_interval() -> None:
    found = compared([4.0], [2.0])
    assert found.improvement_percent == pytest.approx(100)
    assert found.interval_percent == (found.improvement_percent, found.improvement_percent)
    assert found.method == "none"
    assert not narrow(found, 1.0)


# --- ranks


@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.lists(st.integers(0, 4), min_size=1))
@settings(max_examples=60)
def test_the_rank_test_enumerates_every_assignment_of_ranks(
    values: list[int], reference: list[int]
) -> None:
    reference = reference[:6]
    everything = stats.rankdata([*values, *reference])
    seen = sum(everything[: len(values)])
    sums = [sum(ways) for ways in itertools.combinations(everything, len(values))]
    p_value, least = ranks.smaller(values, reference)
    assert p_value == pytest.approx(sum(s <= seen for s in sums) / len(sums))
    assert least == pytest.approx(sum(s == min(sums) for s in sums) / len(sums))


def test_many_boots_are_ranked_by_the_normal_approximation() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.integers(0, 9, 40).tolist(), generator.integers(0, 10, 50).tolist()
    theirs = stats.mannwhitneyu(a, b, alternative="less", method="asymptotic").pvalue
    assert ranks.smaller(a, b)[0] == pytest.approx(theirs)
    assert ranks.smaller([1.0] * 40, [1.0] * 40)[0] == 1


# --- verdicts


@pytest.mark.parametrize(
    ("baseline", "image", "expected"),
    [
        ([100.0] * 5, [98.0] * 5, "faster"),
        ([100.0] * 5, [102.0] * 5, "slower"),
        ([100.0] * 5, [100.0] * 5, "no difference"),
        # Certain, but below the practical threshold of 0.1 %.
        ([100.0] * 5, [100.09] * 5, "no difference"),
        # Larger than that on average, but the boots disagree.
        ([100.0, 130.0, 90.0, 105.0], [100.0, 120.0, 95.0, 110.0], "not enough data"),
        # However far apart: three boots of each are ordered like this by chance one time in ten.
        ([100.0] * 3, [50.0] * 3, "not enough data"),
        ([100.0] * 2, [100.0] * 2, "not enough data"),
        # The ranks say faster and the mean says slower.
        ([100.0] * 9, [99.0] * 8 + [200.0], "not enough data"),
    ],
)
def test_a_verdict_needs_boots_that_agree_beyond_the_threshold(
    baseline: list[float], image: list[float], expected: str
) -> None:
    assert verdict(baseline, image) == expected


def test_one_row_among_many_needs_more_boots() -> None:
    same, other = compared([100.0, 100.3] * 3, [100.1, 100.2] * 3), compared([1.0] * 6, [2.0] * 6)
    assert judge([other], 1.0)[0].verdict == "slower"
    alone = judge([other, *[same] * 30], 1.0)[0]
    assert alone.verdict == "not enough data"
    assert alone.adjusted_p == pytest.approx(31 * other.p_value)
    together = judge([*[other] * 20, *[same] * 11], 1.0)
    assert {j.verdict for j in together[:20]} == {"slower"}


def test_rows_that_cannot_become_significant_are_not_counted() -> None:
    repeated, other = compared([7.0] * 6, [7.0] * 6), compared([1.0] * 6, [2.0] * 6)
    found = judge([other, *[repeated] * 30], 1.0)
    assert found[0].adjusted_p == other.p_value
    assert {(j.verdict, j.adjusted_p) for j in found[1:]} == {("no difference", None)}


def test_the_adjusted_p_values_are_those_of_benjamini_and_hochberg() -> None:
    generator = np.random.default_rng(4)
    rows = [
        compared(generator.normal(100, 3, 9).tolist(), generator.normal(97, 3, 9).tolist())
        for _ in range(12)
    ]
    theirs = stats.false_discovery_control([row.p_value for row in rows])
    assert [j.adjusted_p for j in judge(rows, 1.0)] == pytest.approx(theirs.tolist())


def test_a_difference_between_layouts_is_not_one_between_images() -> None:
    layouts = log_costs(units([100.0] * 5, [102.0] * 5, [98.0] * 5))
    image = log_costs(units([97.0] * 5))
    alone = compare({u: c for u, c in layouts.items() if u.build == 0}, image)
    both = compare(layouts, image)
    assert alone is not None
    assert both is not None
    assert judge([alone], 1.0)[0].verdict == "faster"
    assert judge([both], 1.0)[0].verdict == "not enough data"


def test_boots_continue_until_intervals_are_narrow_and_one_row_can_differ() -> None:
    wide = compared([100.0, 110.0, 90.0, 100.0, 95.0], [100.0, 108.0, 93.0, 100.0, 97.0])
    close = compared([100.0, 100.1] * 5, [99.0, 99.1, 99.0, 99.1, 99.0])
    assert not enough([wide, close], 1.0)
    assert enough([close, None], 1.0)
    assert not enough([close], 0.01)
    # Five boots against ten: a two-sided p-value of 2 / 3,003.
    assert enough([close] * 75, 1.0)
    assert not enough([close] * 76, 1.0)
    assert [min_boots(rows, 0.05, controlled=True) for rows in (1, 36, 75, 76)] == [3, 5, 5, 6]
    assert min_boots(1, 0.05, controlled=False) == 4


# --- outliers


def test_outliers_are_far_from_the_median_in_median_deviations() -> None:
    found = outliers(log_costs(units([100.0, 101.0, 99.0, 100.5, 130.0])))
    assert [o.unit for o in found] == [Unit(0, 4)]
    assert found[0].deviation_percent == pytest.approx(100 * (130 / 100.5 - 1))


def test_counts_that_barely_vary_have_no_outliers() -> None:
    assert outliers(log_costs(units([100.0, 100.0, 100.0, 100.0, 100.05]))) == ()
    assert outliers(log_costs(units([1.0, 9.0, 1.0]))) == ()
    (found,) = outliers(log_costs(units([100.0] * 4 + [100.2])))
    assert found.unit.seed == 4


# --- properties of any data


@given(boots)
def test_an_image_does_not_differ_from_itself(values: list[float]) -> None:
    found = compared(values, values)
    assert found.improvement_percent == pytest.approx(0)
    assert judge([found], 1.0)[0].verdict in ("no difference", "not enough data")


@given(alike, alike)
def test_swapping_the_images_inverts_the_ratio_and_the_verdict(
    a: list[float], b: list[float]
) -> None:
    one, other = compared(a, b), compared(b, a)
    product = (1 + one.improvement_percent / 100) * (1 + other.improvement_percent / 100)
    assert product == pytest.approx(1)
    assert one.p_value == pytest.approx(other.p_value)
    low, high = (log1p(end / 100) for end in one.interval_percent)
    other_low, other_high = (log1p(end / 100) for end in other.interval_percent)
    assert (low, high) == pytest.approx((-other_high, -other_low), rel=1e-3, abs=1e-9)


@given(boots, boots)
def test_the_estimate_is_the_ratio_of_the_mean_costs(a: list[float], b: list[float]) -> None:
    found = compared(a, b)
    ratio = mean_cost(units(a)) / mean_cost(units(b))
    assert 1 + found.improvement_percent / 100 == pytest.approx(ratio)
    assert found.interval_percent[0] <= found.improvement_percent <= found.interval_percent[1]


# --- whole evaluations, seeded; bench/verdicts.py is the large version


def evaluated(generator: np.random.Generator, slowdown: float) -> list[str]:
    """The verdicts of eight cases, of which one has two modes 2.2 % apart, as `proc` has."""

    def boots_of(count: int, more: float) -> list[dict[Unit, float]]:
        noise = generator.normal(0, 1e-5, (count, 8))
        noise[:, 4] += 0.022 * (generator.random(count) < 0.3)
        return [{Unit(0, s): float(c) for s, c in enumerate(more + noise[:, n])} for n in range(8)]

    theirs, ours = boots_of(10, 0.0), boots_of(5, slowdown)
    pairs = [*zip(theirs, ours, strict=True), (mean_over_cases(theirs), mean_over_cases(ours))]
    return [j.verdict for j in judge([compare(*pair) for pair in pairs], 1.0)]


def test_the_baseline_rarely_differs_from_itself() -> None:
    generator = np.random.default_rng(1)
    made = [evaluated(generator, 0.0) for _ in range(100)]
    assert sum(bool({"faster", "slower"} & set(verdicts)) for verdicts in made) <= 5


def test_a_slowdown_of_one_percent_is_found() -> None:
    generator = np.random.default_rng(1)
    made = [evaluated(generator, log(1.01)) for _ in range(100)]
    assert sum(verdicts[-1] == "slower" for verdicts in made) >= 95
    steady = [v for verdicts in made for n, v in enumerate(verdicts[:8]) if n != 4]
    assert set(steady) == {"slower"}
