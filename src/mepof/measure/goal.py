"""Goals: what every image must reach against the baseline, and whether it does.

The estimate decides, and its interval is stated beside it: an estimate that just reaches the bound
meets the goal, although the interval then also holds values that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf
from typing import Literal, get_args

from mepof.measure.comparison import Build, Row, Total, baseline_builds, rows_of, totals_of
from mepof.measure.measurement import Evaluation, Measurement, Record
from mepof.measure.metrics import METRICS, Metric
from mepof.statistics import Comparison, mean_cost, reduction_percent

Quantity = Literal["geomean", "worst", "text", "memory"]
"""What a goal is about: the geometric mean over the cases, the worst case, the size of the code, or
the memory that the kernel uses after it has booted."""

QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

#: Quantities that have neither a metric nor a group.
SIZES: frozenset[str] = frozenset({"text", "memory"})

#: Of quantities that are costs.
DEFAULT_METRIC = METRICS[0].name

# Logarithms and back cost the last digits, which must not decide on a bound that is just reached.
_DIGITS = 9
_BY_NAME = {metric.name: metric for metric in METRICS}

_SIZE_WORDS: dict[Quantity, tuple[str, str]] = {
    "text": ("larger", "smaller"),
    "memory": ("more", "less"),
}
_SIZE_TITLES: dict[Quantity, str] = {"text": "text", "memory": "memory used after boot:"}

Interval = tuple[float, float]


class Goal(Record):
    """What every image except the baseline must reach.

    Attributes:
        bound: in percent. Of ``geomean`` and ``worst`` at least so many percent fewer,
            (1 - value / baseline) * 100, so that a negative bound allows for more; of sizes at
            most so many percent larger, so that a negative bound asks for less.
        metric: its name in ``METRICS``; None for sizes.
        group: of cases that the goal is about; None for all.
    """

    quantity: Quantity
    bound: float
    metric: str | None = None
    group: str | None = None

    @property
    def wanted(self) -> str:
        """The bound in words, such as ``at least 8 % fewer``."""
        if self.quantity in SIZES:
            more, less, least = *_SIZE_WORDS[self.quantity], -self.bound
        else:
            more, less, least = "more", _less(_BY_NAME[str(self.metric)]), self.bound
        if least == 0 and self.quantity in SIZES:
            return f"no {more}"
        if least == 0:
            return f"that {'no case takes' if self.quantity == 'worst' else 'they take no'} more"
        limit = f"{abs(least):.12g} %"
        return f"at least {limit} {less}" if least > 0 else f"at most {limit} {more}"


class GoalVerdict(Record):
    """Whether an image meets a goal.

    Attributes:
        goal: the quantity.
        group: of cases; null for all.
        metric: null for sizes.
        bound: in percent, as of :class:`Goal`.
        value: in percent, in the bound's sense; null if it was not measured.
        interval_percent: the 95 % confidence interval of the value; null where there is none.
        case: ``suite/case`` of the worst case, or of one that has a cost and none on the baseline.
        reason: what was found and what was wanted, or why nothing was measured.
    """

    goal: Quantity
    group: str | None = None
    metric: str | None
    bound: float
    image: str
    met: bool
    value: float | None = None
    interval_percent: Interval | None = None
    case: str | None = None
    reason: str

    @property
    def title(self) -> str:
        """The goal as a program writes it, such as ``geomean:pipe 8 kernel_instructions``."""
        quantity = self.goal if self.group is None else f"{self.goal}:{self.group}"
        return " ".join(filter(None, (quantity, f"{self.bound:.12g}", self.metric)))


def verdicts_of(goals: Sequence[Goal], evaluation: Evaluation) -> tuple[GoalVerdict, ...]:
    """Whether the images of an evaluation meet some goals: image by image, in the goals' order.

    An image that is not sound meets no goal, and neither does one with a case that only it or only
    the baseline has. None does if the baseline or its A/A control is not sound. If there is no
    second image, the only one meets none.

    Args:
        evaluation: images under the names that the program gives them.
    """
    if not goals:
        return ()
    baseline, *others = evaluation.images
    if not others:
        alone = "there is no second image to compare with"
        return tuple(_not_measured(goal, baseline, alone) for goal in goals)
    builds = baseline_builds(evaluation)
    metrics = [metric for metric in METRICS if any(g.metric == metric.name for g in goals)]
    found: list[GoalVerdict] = []
    for image in others:
        why = evaluation.why_incomparable
        if not image.sound:
            why = f"{image.image} {image.how_it_failed}"
        if why is not None:
            found += [_not_measured(goal, image, why) for goal in goals]
            continue
        rows = rows_of(builds, [Build((image,))], metrics=metrics)
        for goal in goals:
            if goal.quantity == "text":
                found.append(_text(goal, baseline, image))
            elif goal.quantity == "memory":
                found.append(_memory(goal, baseline, image))
            else:
                found.append(_cost(goal, baseline, image, rows))
    return tuple(found)


def _cost(
    goal: Goal, baseline: Measurement, image: Measurement, rows: Sequence[Row]
) -> GoalVerdict:
    metric = _BY_NAME[str(goal.metric)]
    used = [
        row
        for row in rows
        if row.metric is metric
        and (metric.control or not row.case.control)
        and goal.group in (None, row.case.group)
    ]
    if not used:
        of = "" if goal.group is None else f" of {goal.group}"
        return _not_measured(goal, image, f"no case{of} has a figure of {_in_sentence(metric)}")
    for row in used:
        if not row.baseline or not row.value:
            lacking = image if row.baseline else baseline
            return _not_measured(goal, image, f"{lacking.image} did not run {_name(row)}")
    # It has no ratio: a mean would leave out what is worse than any bound.
    new = next((row for row in used if isinf(_reduction(row))), None)
    if new is not None:
        found = f"{_name(new)} has {_in_sentence(metric)}, and none on the baseline"
        return _verdict(goal, image, False, f"{found}; the goal is {goal.wanted}", case=new)
    if goal.quantity == "worst":
        return _worst(goal, image, used)
    total = next(iter(totals_of(used)), None)
    return _geomean(goal, image, total, len(used))


def _geomean(goal: Goal, image: Measurement, total: Total | None, cases: int) -> GoalVerdict:
    metric = _BY_NAME[str(goal.metric)]
    if total is None:
        why = f"no case has a ratio of {_in_sentence(metric)}, which were none"
        return _not_measured(goal, image, why)
    compared = len(total.cases)
    of = f" of {cases}" if compared < cases else ""
    return _measured(
        goal,
        image,
        reduction_percent(total.comparison.improvement_percent),
        _interval(total.comparison),
        f"in the geometric mean over {compared}{of} case{'s' * (cases > 1)}{_of_group(goal)}",
    )


def _worst(goal: Goal, image: Measurement, rows: Sequence[Row]) -> GoalVerdict:
    row = min(rows, key=lambda each: round(_reduction(each), _DIGITS))
    interval = _interval(row.comparison) if row.comparison else None
    where = f"in the worst case{_of_group(goal)}, {_name(row)}"
    return _measured(goal, image, _reduction(row), interval, where, row)


def _text(goal: Goal, baseline: Measurement, image: Measurement) -> GoalVerdict:
    for each in (baseline, image):
        if not each.size_bytes.text:
            why = f"of {each.image} only the size of its file is known, not that of its text"
            return _not_measured(goal, image, why)
    theirs, ours = baseline.size_bytes.text, image.size_bytes.text
    assert theirs and ours is not None
    return _measured(goal, image, 100 * (ours / theirs - 1), None, "")


def _memory(goal: Goal, baseline: Measurement, image: Measurement) -> GoalVerdict:
    for each in (baseline, image):
        if each.memory is None:
            return _not_measured(goal, image, f"the memory of {each.image} was not read")
    assert baseline.memory and image.memory is not None
    return _measured(goal, image, 100 * (image.memory.used / baseline.memory.used - 1), None, "")


def _reduction(row: Row) -> float:
    """How much less a case costs, in percent; -inf if it has a cost and the baseline none."""
    if row.comparison is not None:
        return reduction_percent(row.comparison.improvement_percent)
    # A boot in which an event did not occur has no logarithm, but the means have a ratio.
    baseline, value = mean_cost(row.baseline), mean_cost(row.value)
    if baseline > 0:
        return 100 * (1 - value / baseline)
    return -inf if value > 0 else 0.0


def _measured(
    goal: Goal,
    image: Measurement,
    value: float,
    interval: Interval | None,
    where: str,
    case: Row | None = None,
) -> GoalVerdict:
    value = round(value, _DIGITS) + 0.0  # no negative zero
    met = value <= goal.bound if goal.quantity in SIZES else value >= goal.bound
    if goal.quantity in SIZES:
        more, less = _SIZE_WORDS[goal.quantity]
        found = f"{_SIZE_TITLES[goal.quantity]} {_amount(-value, -goal.bound, less, more)}"
    else:
        metric = _BY_NAME[str(goal.metric)]
        less = _less(metric)
        found = f"{_amount(value, goal.bound, less, 'more')} {_in_sentence(metric)} {where}"
        if interval is not None:
            found += f" (95 % interval: {_range(interval, less, 'more')})"
    return _verdict(goal, image, met, f"{found}; the goal is {goal.wanted}", value, interval, case)


def _not_measured(goal: Goal, image: Measurement, why: str) -> GoalVerdict:
    return _verdict(goal, image, False, f"not measured: {why}")


def _verdict(
    goal: Goal,
    image: Measurement,
    met: bool,
    reason: str,
    value: float | None = None,
    interval: Interval | None = None,
    case: Row | None = None,
) -> GoalVerdict:
    return GoalVerdict(
        goal=goal.quantity,
        group=goal.group,
        metric=goal.metric,
        bound=goal.bound,
        image=image.image,
        met=met,
        value=value,
        interval_percent=interval,
        case=_name(case) if case is not None else None,
        reason=reason,
    )


def _interval(found: Comparison) -> Interval | None:
    if found.method == "none":
        return None
    low, high = found.interval_percent
    return reduction_percent(low), reduction_percent(high)


def _amount(reduction: float, bound: float, less: str, more: str) -> str:
    """A change in words, with as many decimals as show on which side of a bound it is."""
    digits = 2
    while digits < _DIGITS and (round(reduction, digits) < bound) != (reduction < bound):
        digits += 1
    return f"{abs(reduction):.{digits}f} % {less if round(reduction, digits) >= 0 else more}"


def _range(interval: Interval, less: str, more: str) -> str:
    """Both ends of an interval in words, such as ``9.81 to 10.43 % fewer``."""
    low, high = (round(end, _DIGITS) for end in interval)
    if low >= 0:
        return f"{abs(low):.2f} to {high:.2f} % {less}"
    if high <= 0:
        return f"{abs(high):.2f} to {-low:.2f} % {more}"
    return f"{_amount(low, 0, less, more)} to {_amount(high, 0, less, more)}"


def _less(metric: Metric) -> str:
    return "less" if metric.of_time else "fewer"


def _of_group(goal: Goal) -> str:
    return "" if goal.group is None else f" of {goal.group}"


def _in_sentence(metric: Metric) -> str:
    return metric.title[0].lower() + metric.title[1:]


def _name(row: Row) -> str:
    return f"{row.case.suite}/{row.case.case}"
