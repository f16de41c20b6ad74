"""Goals, and which images meet them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from report.samples import COSTS, measurement

from mepof.measure.comparison import Build, baseline_builds, rows_of, totals_of
from mepof.measure.goal import SIZES, Goal, GoalVerdict, Quantity, _range, verdicts_of
from mepof.measure.measurement import (
    Boot,
    CaseMeasurement,
    Evaluation,
    Measurement,
    SizeBytes,
    Unsupported,
)
from mepof.statistics import reduction_percent

FACTORS = (1.0, 1.01, 0.99, 1.0, 1.002)


def goal(quantity: Quantity, bound: float, metric: str = "kernel_instructions") -> Goal:
    return Goal(quantity=quantity, bound=bound, metric=None if quantity in SIZES else metric)


def judged(wanted: Goal, *images: Measurement) -> GoalVerdict:
    (found,) = verdicts_of([wanted], Evaluation(images=images))
    return found


def cheaper(factor: float, boots: Sequence[float] = (1.0,)) -> tuple[Measurement, Measurement]:
    """A baseline, and an image whose every case costs so many times as much."""
    return (
        measurement("plain", factors=boots),
        measurement("opt", factors=[factor * boot for boot in boots]),
    )


def with_costs(name: str, **factors: float) -> Measurement:
    """One boot in which some cases cost so many times as much."""
    costs = {case: cost * factors.get(case, 1.0) for case, cost in COSTS.items()}
    return measurement(name, factors=(1.0,), costs=costs)


def without(image: Measurement, case: str) -> Measurement:
    """The image, unable to run a case."""
    boots = tuple(
        Boot(
            seed=boot.seed,
            cases=tuple(c for c in boot.cases if c.case != case),
            unsupported=(Unsupported(suite="kbench", case=case, needs="CONFIG_X"),),
        )
        for boot in image.boots
    )
    return image.model_copy(update={"boots": boots})


def test_the_geometric_mean_is_held_against_its_bound() -> None:
    images = cheaper(0.9)
    met, missed = judged(goal("geomean", 8), *images), judged(goal("geomean", 12), *images)
    assert (met.met, missed.met) == (True, False)
    assert met.value == missed.value == pytest.approx(10)
    assert (met.image, met.goal, met.metric, met.bound) == (
        "opt",
        "geomean",
        "kernel_instructions",
        8,
    )
    assert met.title == "geomean 8 kernel_instructions"
    assert met.reason == (
        "10.00 % fewer kernel instructions in the geometric mean over 4 cases; "
        "the goal is at least 8 % fewer"
    )
    # One boot has no interval.
    assert met.interval_percent is None


def test_the_estimate_decides_and_the_interval_is_stated() -> None:
    evaluation = Evaluation(images=cheaper(0.9, FACTORS))
    found = verdicts_of([goal("geomean", 9.9), goal("worst", 9.9)], evaluation)
    for verdict in found:
        assert verdict.met
        assert verdict.interval_percent is not None
        assert verdict.interval_percent[0] < 9.9 < verdict.interval_percent[1]
        assert "(95 % interval: " in verdict.reason
    rows = rows_of(baseline_builds(evaluation), [Build((evaluation.images[1],))])
    comparison = totals_of(rows)[0].comparison
    assert found[0].value == pytest.approx(reduction_percent(comparison.improvement_percent))


def test_the_baselines_controls_count_as_they_do_in_the_report() -> None:
    plain, opt = cheaper(0.9)
    again = measurement("plain", factors=(1.1,), seed=1001)
    (found,) = verdicts_of([goal("geomean", 0)], Evaluation(images=(plain, opt), same_build=again))
    assert found.value == pytest.approx(100 * (1 - 0.9 / 1.1**0.5))


@pytest.mark.parametrize("quantity", ["geomean", "worst"])
@pytest.mark.parametrize("bound", [8, 10, -1, 12.5, 0])
def test_a_bound_that_is_just_reached_is_met(quantity: Quantity, bound: float) -> None:
    images = cheaper(1 - bound / 100)
    assert judged(goal(quantity, bound), *images).met
    missed = judged(goal(quantity, bound + 0.001), *images)
    assert not missed.met
    # As many decimals as it takes to see that it is missed.
    assert missed.value == pytest.approx(bound)


@pytest.mark.parametrize(
    ("quantity", "wanted"),
    [("worst", "that no case takes more"), ("geomean", "that they take no more")],
)
def test_a_bound_of_zero_is_a_sentence(quantity: Quantity, wanted: str) -> None:
    found = judged(goal(quantity, 0), *cheaper(0.9))
    assert found.reason.endswith(f"; the goal is {wanted}")


def test_a_value_is_shown_on_its_side_of_the_bound() -> None:
    images = cheaper(1 - 0.07996)
    reason = judged(goal("geomean", 8), *images).reason
    assert reason.startswith("7.996 % fewer kernel instructions")


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((9.81, 10.434), "9.81 to 10.43 % fewer"),
        ((-2.0, -1.0), "1.00 to 2.00 % more"),
        ((-0.5, 0.25), "0.50 % more to 0.25 % fewer"),
        ((-0.001, 10.43), "0.001 % more to 10.43 % fewer"),
        ((-1.0, 0.001), "1.00 % more to 0.00 % fewer"),
        ((-0.5, 0.0), "0.00 to 0.50 % more"),
        ((-0.0, 0.5), "0.00 to 0.50 % fewer"),
        ((-1e-13, 0.5), "0.00 to 0.50 % fewer"),
        ((-0.5, -0.0), "0.00 to 0.50 % more"),
    ],
)
def test_the_ends_of_an_interval_are_on_their_sides(
    interval: tuple[float, float], words: str
) -> None:
    assert _range(interval, "fewer", "more") == words


def test_the_worst_case_is_named() -> None:
    found = judged(
        goal("worst", -1), with_costs("plain"), with_costs("opt", proc=1.02, syscall=0.5)
    )
    assert not found.met
    assert found.case == "kbench/proc"
    assert found.value == pytest.approx(-2)
    assert found.reason == (
        "2.00 % more kernel instructions in the worst case, kbench/proc; "
        "the goal is at most 1 % more"
    )
    allowed = with_costs("opt", proc=1.01)
    assert judged(goal("worst", -1), with_costs("plain"), allowed).met


def test_time_is_less_and_not_fewer() -> None:
    found = judged(goal("geomean", 50, "guest_time"), *cheaper(0.9))
    assert " % less guest time in " in found.reason
    assert found.reason.endswith("the goal is at least 50 % less")


@pytest.mark.parametrize(
    ("bound", "text", "met", "reason"),
    [
        (2, 9_180_000, True, "text 2.00 % larger; the goal is at most 2 % larger"),
        (2, 9_180_001, False, "text 2.00001 % larger; the goal is at most 2 % larger"),
        (2, 8_100_000, True, "text 10.00 % smaller; the goal is at most 2 % larger"),
        (-5, 8_550_000, True, "text 5.00 % smaller; the goal is at least 5 % smaller"),
        (-5, 9_000_000, False, "text 0.00 % smaller; the goal is at least 5 % smaller"),
        (0, 9_000_000, True, "text 0.00 % smaller; the goal is no larger"),
    ],
)
def test_text_may_grow_to_its_bound(bound: float, text: int, met: bool, reason: str) -> None:
    found = judged(goal("text", bound), measurement("plain"), measurement("opt", text=text))
    assert (found.met, found.reason) == (met, reason)
    assert found.value == pytest.approx(100 * (text / 9_000_000 - 1))
    assert (found.metric, found.case, found.interval_percent) == (None, None, None)


def test_a_goal_of_a_group_is_about_its_cases_alone() -> None:
    costs = {"plain": with_costs("plain"), "opt": with_costs("opt", proc=0.8, syscall=1.5)}
    wanted = Goal(quantity="geomean", bound=8, metric="kernel_instructions", group="proc")
    found = judged(wanted, *costs.values())
    assert (found.met, found.group) == (True, "proc")
    assert found.value == pytest.approx(20)
    assert found.title == "geomean:proc 8 kernel_instructions"
    assert found.reason == (
        "20.00 % fewer kernel instructions in the geometric mean over 1 case of proc; "
        "the goal is at least 8 % fewer"
    )
    worst = judged(wanted.model_copy(update={"quantity": "worst"}), *costs.values())
    assert worst.reason.startswith("20.00 % fewer kernel instructions in the worst case of proc, ")
    none = judged(wanted.model_copy(update={"group": "binder"}), *costs.values())
    assert none.reason == "not measured: no case of binder has a figure of kernel instructions"


def test_latency_and_throughput_can_be_goals() -> None:
    images = [measurement(n, factors=(f,), figures=True) for n, f in (("plain", 1.0), ("opt", 0.9))]
    found = judged(goal("geomean", 8, "latency"), *images)
    assert found.met
    assert found.value == pytest.approx(10, abs=0.2)  # rounded to nanoseconds
    assert " % less latency in the geometric mean over 4 cases" in found.reason
    # Only one case moves bytes.
    assert "over 1 case" in judged(goal("geomean", 8, "time_per_byte"), *images).reason


@pytest.mark.parametrize(
    ("reserved", "met", "reason"),
    [
        (20_000_000, True, "memory used after boot: 0.00 % less; the goal is at most 1 % more"),
        (20_852_000, False, "memory used after boot: 2.00 % more; the goal is at most 1 % more"),
    ],
)
def test_memory_may_grow_to_its_bound(reserved: int, met: bool, reason: str) -> None:
    plain = measurement("plain", reserved=20_000_000)
    found = judged(goal("memory", 1), plain, measurement("opt", reserved=reserved))
    assert (found.met, found.reason, found.metric) == (met, reason, None)


@pytest.mark.parametrize("unread", ["plain", "opt"])
def test_memory_that_was_not_read_is_not_measured(unread: str) -> None:
    images = [
        measurement(name, reserved=None if name == unread else 20_000_000)
        for name in ("plain", "opt")
    ]
    found = judged(goal("memory", 1), *images)
    assert (found.met, found.value) == (False, None)
    assert found.reason == f"not measured: the memory of {unread} was not read"


@pytest.mark.parametrize("bare", [0, 1])
def test_text_of_a_bare_image_is_not_measured(bare: int) -> None:
    images = [measurement("plain"), measurement("opt")]
    size = SizeBytes(text=None, image=7_000_000)
    images[bare] = images[bare].model_copy(update={"size_bytes": size})
    found = judged(goal("text", 2), *images)
    assert (found.met, found.value) == (False, None)
    assert found.reason.startswith(f"not measured: of {images[bare].image} only the size of its")


def test_one_image_alone_meets_nothing() -> None:
    found = judged(goal("text", 2), measurement("opt"))
    assert (found.image, found.met) == ("opt", False)
    assert found.reason == "not measured: there is no second image to compare with"


def test_nothing_is_judged_without_goals() -> None:
    assert verdicts_of([], Evaluation(images=cheaper(0.9))) == ()


@pytest.mark.parametrize("quantity", ["geomean", "worst", "text"])
def test_an_unsound_image_meets_nothing(quantity: Quantity) -> None:
    plain = measurement("plain")
    broken = measurement("opt", factors=(0.1,), self_check="pipe:\nsum 3 is not 4")
    found = judged(goal(quantity, -50 if quantity != "text" else 50), plain, broken)
    assert (found.met, found.value) == (False, None)
    # One line, whatever the check printed.
    assert found.reason == "not measured: opt failed its self-check"
    silent = measurement("plain", booted=False, self_check="no answer")
    found = judged(goal(quantity, 1), silent, measurement("opt"))
    assert found.reason == "not measured: plain did not boot"


@pytest.mark.parametrize("quantity", ["geomean", "worst", "text"])
def test_nothing_is_met_if_the_baselines_control_is_unsound(quantity: Quantity) -> None:
    dead = measurement("plain", factors=(), booted=False, self_check="panic")
    wanted = goal(quantity, -50 if quantity != "text" else 50)
    (found,) = verdicts_of([wanted], Evaluation(images=cheaper(0.9), same_build=dead))
    assert (found.met, found.value) == (False, None)
    assert found.reason == "not measured: the A/A control of plain did not boot"


@pytest.mark.parametrize("quantity", ["geomean", "worst"])
def test_a_metric_that_was_not_measured_meets_nothing(quantity: Quantity) -> None:
    found = judged(goal(quantity, -50, "kernel_cycles"), *cheaper(0.5))
    assert (found.met, found.value) == (False, None)
    assert found.reason == "not measured: no case has a figure of kernel cycles"


@pytest.mark.parametrize("quantity", ["geomean", "worst"])
def test_a_case_that_only_one_image_ran_meets_nothing(quantity: Quantity) -> None:
    plain, opt = cheaper(0.5)
    found = judged(goal(quantity, 0), plain, without(opt, "proc"))
    assert (found.met, found.reason) == (False, "not measured: opt did not run kbench/proc")
    found = judged(goal(quantity, 0), without(plain, "proc"), opt)
    assert (found.met, found.reason) == (False, "not measured: plain did not run kbench/proc")
    # A case that neither can run is not part of the evaluation.
    assert judged(goal(quantity, 0), without(plain, "proc"), without(opt, "proc")).met


def events(name: str, **misses: int) -> Measurement:
    """One boot whose cases have so many L1I misses."""
    made = measurement(name, factors=(1.0,), core="skylake")

    def changed(case: CaseMeasurement) -> CaseMeasurement:
        assert case.modelled is not None
        side = case.modelled.kernel
        count = misses.get(case.case.split("-")[0], 100)
        kernel = side.model_copy(update={"events": {**side.events, "l1i_misses": count}})
        modelled = case.modelled.model_copy(update={"kernel": kernel})
        return case.model_copy(update={"modelled": modelled})

    (boot,) = made.boots
    cases = tuple(map(changed, boot.cases))
    return made.model_copy(update={"boots": (boot.model_copy(update={"cases": cases}),)})


def test_events_that_do_not_occur_are_no_change_and_new_ones_are_worse_than_any_bound() -> None:
    misses = "kernel_l1i_misses"
    none, fewer = events("plain", proc=0), events("opt", proc=0, pipe=90)
    assert judged(goal("worst", 0, misses), none, fewer).value == 0
    mean = judged(goal("geomean", 3, misses), none, fewer)
    assert mean.met
    assert "over 3 of 4 cases" in mean.reason
    new = judged(goal("worst", -900, misses), none, events("opt", proc=1))
    assert (new.met, new.value, new.case) == (False, None, "kbench/proc")
    assert new.reason == (
        "kbench/proc has kernel L1I misses, and none on the baseline; "
        "the goal is at most 900 % more"
    )
    # A mean over the other cases would not show it.
    hidden = judged(goal("geomean", -900, misses), none, events("opt", proc=1))
    assert (hidden.met, hidden.value, hidden.reason) == (False, None, new.reason)
    gone = judged(goal("worst", 0, misses), events("plain"), events("opt", proc=0))
    assert (gone.met, gone.value) == (True, 0)
    nothing = events("plain", syscall=0, pipe=0, proc=0, file=0)
    reason = judged(goal("geomean", 0, misses), nothing, nothing).reason
    assert reason == "not measured: no case has a ratio of kernel L1I misses, which were none"


def test_verdicts_are_image_by_image_in_the_order_of_the_goals() -> None:
    plain, opt = cheaper(0.9)
    other = measurement("other", factors=(1.1,))
    goals = [goal("text", 2), goal("worst", -1)]
    found = verdicts_of(goals, Evaluation(images=(plain, opt, other)))
    assert [(v.image, v.goal, v.met) for v in found] == [
        *(("opt", "text", True), ("opt", "worst", True)),
        *(("other", "text", True), ("other", "worst", False)),
    ]
