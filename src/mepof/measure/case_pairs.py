"""Cases compared with each other on one image: how many times as much one costs as the other, how
much more, or what one event costs.

Both cases of a pair ran in the same boot, so each boot gives one value, whose mean is stated with
its interval. Quantities have a kernel and a user part, because two cases differ in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import fmean

from mepof.measure.measurement import CaseMeasurement, Evaluation, Measurement, Record
from mepof.measure.metrics import EMULATED, Kind
from mepof.measure.quantities import QUANTITIES, Measured, Side
from mepof.statistics import mean_interval
from mepof.suite.cases import CaseId, load_suite, suite_names
from mepof.suite.comparison import Asked, By

Interval = tuple[float, float]


class CasePair(Asked):
    """Two cases that are compared on every image.

    Attributes:
        title: in running text.
        suite: the suite that asks for it; None if a program does.
    """

    title: str
    first: CaseId
    second: CaseId
    suite: str | None = None


class PairSide(Record):
    """The kernel's part of a pair in one quantity, the user's, or both together.

    Attributes:
        first: the mean cost of an operation of the first case; null if it was not measured.
        second: likewise, of the second case.
        first_events: of ``per-event``, the mean number of events in an operation; null otherwise.
        second_events: likewise, of the second case.
        value: the ratio, the difference, or the cost of an event; null if there is none.
        interval: its 95 % confidence interval; null with fewer than two boots.
    """

    first: float | None = None
    second: float | None = None
    first_events: float | None = None
    second_events: float | None = None
    value: float | None = None
    interval: Interval | None = None


class PairRow(Record):
    """Two cases on one image in one quantity.

    Attributes:
        suite: the suite that asks for it; null if the program does.
        first: ``suite/case``; ``second`` likewise.
        metric: the quantity, such as ``cycles``.
        event: of which ``value`` is the cost; null unless ``by`` is ``per-event``.
        unit: of ``first`` and ``second``.
        native: whether the image ran without emulation.
        kernel: null for a quantity without parts, as ``user`` is.
        boots: in which both cases ran.
        reason: why there is no value; null if there is one.
    """

    image: str
    title: str
    suite: str | None
    first: str
    second: str
    by: By
    metric: str
    event: str | None
    kind: Kind
    native: bool
    unit: str
    kernel: PairSide | None
    user: PairSide | None
    both: PairSide
    boots: int
    reason: str | None = None

    @property
    def shown(self) -> PairSide:
        """The part that stands for all: both, or the kernel's if only that was measured."""
        if self.kernel is not None and self.kernel.first is not None and self.both.first is None:
            return self.kernel
        return self.both


def own_pairs(evaluation: Evaluation) -> tuple[CasePair, ...]:
    """What suites compare by themselves, of the cases that an evaluation measured."""
    ran = {
        (case.suite, case.case)
        for image in evaluation.images
        for boot in image.boots
        for case in boot.cases
    }
    suites = {suite for suite, _ in ran}
    return tuple(
        CasePair(
            **each.model_dump(exclude={"cases"}),
            first=(name, each.cases[0]),
            second=(name, each.cases[1]),
            suite=name,
        )
        for name in suite_names()
        if name in suites
        for each in load_suite(name).comparisons
        if {(name, case) for case in each.cases} <= ran
    )


def pair_rows(pairs: Sequence[CasePair], evaluation: Evaluation) -> tuple[PairRow, ...]:
    """Every pair on every image, in every quantity.

    A pair of a suite is left out where it was not measured; one of a program has the reason.
    """
    return tuple(
        row
        for pair in pairs
        for image in evaluation.images
        for row in _rows(pair, image)
        if pair.suite is None or row.shown.first is not None
    )


_Boots = Sequence[tuple[CaseMeasurement, CaseMeasurement]]
"""Both cases in each boot that ran them."""


def _rows(pair: CasePair, image: Measurement) -> Iterator[PairRow]:
    boots = [*_boots(pair, image)] if image.sound else []
    for name in pair.metrics or _default(pair, boots):
        quantity = QUANTITIES[name]
        both, why = _compared(pair, quantity, boots, "both")
        kernel = user = None
        if quantity.user is not None:
            kernel, of_kernel = _compared(pair, quantity, boots, "kernel")
            user, _ = _compared(pair, quantity, boots, "user")
            # A PMU may have counted the kernel alone.
            why = of_kernel if both.first is None else why
        yield PairRow(
            image=image.image,
            title=pair.title,
            suite=pair.suite,
            first="/".join(pair.first),
            second="/".join(pair.second),
            by=pair.by,
            metric=name,
            event=pair.event,
            kind=quantity.metric.kind(image.device),
            native=image.device.accel != EMULATED,
            unit=quantity.metric.unit,
            kernel=kernel,
            user=user,
            both=both,
            boots=len(boots),
            reason=why if boots else _not_run(pair, image),
        )


def _boots(pair: CasePair, image: Measurement) -> Iterator[tuple[CaseMeasurement, CaseMeasurement]]:
    for boot in image.boots:
        ran = {(case.suite, case.case): case for case in boot.cases}
        if pair.first in ran and pair.second in ran:
            yield ran[pair.first], ran[pair.second]


def _default(pair: CasePair, boots: _Boots) -> tuple[str, ...]:
    """Instructions, and cycles where something measured them."""
    if pair.by == "per-event":
        return ("cycles",)
    cycles = QUANTITIES["cycles"]
    known = any(cycles.metric.cost(case) is not None for both in boots for case in both)
    return ("instructions", "cycles") if known else ("instructions",)


def _not_run(pair: CasePair, image: Measurement) -> str:
    """Why no boot of an image ran both cases."""
    if not image.sound:
        return f"{image.image} {image.how_it_failed}"
    for suite, case in (pair.first, pair.second):
        if not any((c.suite, c.case) == (suite, case) for b in image.boots for c in b.cases):
            needs = [
                known.needs
                for boot in image.boots
                for known in boot.unsupported
                if (known.suite, known.case) == (suite, case)
            ]
            why = f"cannot run {suite}/{case}: {needs[0]} is missing" if needs else ""
            return f"{image.image} {why or f'did not run {suite}/{case}'}"
    return f"no boot of {image.image} ran both cases"


def _compared(
    pair: CasePair, quantity: Measured, boots: _Boots, side: Side
) -> tuple[PairSide, str | None]:
    """A part of a pair, and why it has no value."""
    first, second = _costs(quantity, boots, side)
    if not first or not second:
        return PairSide(), f"no figure of {quantity.in_sentence}"
    one, other = _mean(pair, first), _mean(pair, second)
    found = PairSide(first=one, second=other)
    if pair.by == "ratio":
        for name, costs in ((pair.first, first), (pair.second, second)):
            if min(costs) <= 0:
                none = f"{'/'.join(name)} has no {quantity.in_sentence}"
                return found, f"no ratio: {none} in a boot"
        ends = mean_interval([log(a / b) for a, b in zip(first, second, strict=True)])
        interval = (exp(ends[0]), exp(ends[1])) if ends else None
        return _with(found, one / other, interval), None
    values = [a - b for a, b in zip(first, second, strict=True)]
    if pair.event is not None:
        event = QUANTITIES[pair.event]
        events, others = _costs(event, boots, side)
        if not events or not others:
            return found, f"no figure of {event.in_sentence}"
        found = found.model_copy(
            update={"first_events": fmean(events), "second_events": fmean(others)}
        )
        changes = [a - b for a, b in zip(events, others, strict=True)]
        if not all(changes):
            return found, f"both cases have as many {event.in_sentence} in a boot"
        values = [value / change for value, change in zip(values, changes, strict=True)]
    return _with(found, fmean(values), mean_interval(values)), None


def _costs(quantity: Measured, boots: _Boots, side: Side) -> tuple[list[float], list[float]]:
    """The costs of both cases in every boot; nothing if the device could not measure one."""
    found: tuple[list[float], list[float]] = [], []
    for both in boots:
        for costs, case in zip(found, both, strict=True):
            cost = quantity.cost(case, side)
            if cost is None:
                return [], []
            costs.append(cost)
    return found


def _mean(pair: CasePair, costs: Sequence[float]) -> float:
    """Geometric for a ratio, so that the means have that ratio; otherwise arithmetic."""
    if min(costs) == max(costs):
        return costs[0]  # without the rounding of exp
    if pair.by == "ratio" and min(costs) > 0:
        return exp(fmean(map(log, costs)))
    return fmean(costs)


def _with(side: PairSide, value: float, interval: Interval | None) -> PairSide:
    return side.model_copy(update={"value": value, "interval": interval})
