"""Simulated evaluations: noise, observed or modelled, and the verdicts on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from mepof.measure.measurement import Measurement
from mepof.statistics import Comparison, Unit, compare, enough, judge, mean_over_cases

Generator = np.random.Generator
#: Log costs of so many boots: boots by rows, each a case in a metric.
Noise = Callable[[Generator, int], Any]
METRICS = ("kernel_instructions", "kernel_taken_branches")


@dataclass(frozen=True)
class Boots:
    """What the boots of one kernel cost, in every case and metric of METRICS.

    Attributes:
        log_costs: boots by rows; first all cases in the first metric.
    """

    cases: tuple[str, ...]
    log_costs: Any

    @classmethod
    def of(cls, measurement: Measurement) -> Boots:
        """Those of a measurement."""
        first = measurement.boots[0]
        rows = [
            [log(getattr(case, metric)) for metric in METRICS for case in boot.cases]
            for boot in measurement.boots
        ]
        return cls(tuple(case.case for case in first.cases), np.asarray(rows))

    def noise(self) -> Noise:
        """Boots drawn from these, whole, so that their cases stay together."""
        residuals = self.log_costs - np.median(self.log_costs, axis=0)
        return lambda generator, boots: residuals[generator.integers(0, len(residuals), boots)]

    def many(self, cases: int) -> Noise:
        """That many cases, each with the noise of one of these and drawn by itself."""
        residuals = self.log_costs - np.median(self.log_costs, axis=0)
        known = len(self.cases)
        columns = np.asarray(
            [m * known + case % known for m in range(len(METRICS)) for case in range(cases)]
        )

        def drawn(generator: Generator, boots: int) -> Any:
            chosen = generator.integers(0, len(residuals), (boots, cases))
            return residuals[np.tile(chosen, (1, len(METRICS))), columns]

        return drawn


def normal(cases: int, percent: float) -> Noise:
    """Normal noise of this standard deviation, independent for every case."""
    return lambda generator, boots: generator.normal(0, percent / 100, (boots, cases))


def two_modes(cases: int, percent: float) -> Noise:
    """Every case takes this much more in half of all boots, and never anything between."""
    return lambda generator, boots: generator.integers(0, 2, (boots, cases)) * percent / 100


def wall_time(cases: int, percent: float) -> Noise:
    """Wall time: log-normal, part of it common to all cases of a boot, and in one boot of
    twenty a case takes 5 to 50 % longer."""

    def drawn(generator: Generator, boots: int) -> Any:
        common = generator.normal(0, percent / 200, (boots, 1))
        own = generator.normal(0, percent / 100, (boots, cases))
        held_up = generator.random((boots, cases)) < 0.05
        return common + own + held_up * np.log1p(generator.uniform(0.05, 0.5, (boots, cases)))

    return drawn


@dataclass(frozen=True)
class Design:
    """How an evaluation is made: between so many boots and so many, to this precision."""

    min_boots: int
    max_boots: int
    precision_percent: float


@dataclass(frozen=True)
class Evaluation:
    """The result of one simulated evaluation.

    Attributes:
        boots: of each image.
        overall: the verdicts of the geometric means.
        cases: those of the cases.
        intervals: of the geometric means and cases, in percent.
    """

    boots: int
    overall: tuple[str, ...]
    cases: tuple[str, ...]
    intervals: tuple[tuple[float, float], ...]
    comparisons: tuple[Comparison, ...]


def evaluation(
    noise: Noise, metrics: int, design: Design, slowdown: Any, generator: Generator
) -> Evaluation:
    """Boot an image, its baseline, and the baseline again as its control, and judge.

    Args:
        metrics: how many metrics the columns of the noise are of.
        slowdown: log cost that the image has more, for every column or one for all.
    """
    image = noise(generator, design.max_boots) + slowdown
    baseline, control = noise(generator, design.max_boots), noise(generator, design.max_boots)
    boots = design.min_boots
    while True:
        found = _compared(np.vstack((baseline[:boots], control[:boots])), image[:boots], metrics)
        if boots == design.max_boots or enough(found, design.precision_percent):
            break
        boots += 1
    verdicts = tuple(j.verdict for j in judge(found, design.precision_percent))
    intervals = tuple(c.interval_percent for c in found)
    return Evaluation(boots, verdicts[:metrics], verdicts[metrics:], intervals, tuple(found))


def _compared(baseline: Any, image: Any, metrics: int) -> list[Comparison]:
    columns = image.shape[1]
    theirs, ours = (
        [
            {Unit(0, seed): float(cost) for seed, cost in enumerate(costs[:, n])}
            for n in range(columns)
        ]
        for costs in (baseline, image)
    )
    cases = columns // metrics
    totals = [
        compare(*(mean_over_cases(side[m * cases : (m + 1) * cases]) for side in (theirs, ours)))
        for m in range(metrics)
    ]
    rows = [compare(*pair) for pair in zip(theirs, ours, strict=True)]
    return [row for row in (*totals, *rows) if row is not None]


def false_rate(evaluations: Sequence[Evaluation]) -> float:
    """Share of A/A evaluations in which anything is judged faster or slower, percent."""
    wrong = sum(1 for e in evaluations if {"faster", "slower"} & {*e.overall, *e.cases})
    return 100 * wrong / len(evaluations)


def found_rate(evaluations: Sequence[Evaluation]) -> float:
    """Share of evaluations in which the first metric's geometric mean is slower, percent."""
    return 100 * sum(e.overall[0] == "slower" for e in evaluations) / len(evaluations)


def case_rates(evaluations: Sequence[Evaluation], cases: int) -> list[float]:
    """The same for each case in the first metric."""
    return [
        100 * sum(e.cases[case] == "slower" for e in evaluations) / len(evaluations)
        for case in range(cases)
    ]


def read_boots(path: Path) -> dict[str, Boots]:
    """The boots that ``bench/verdicts.py --take`` kept, by kernel."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Boots(tuple(kernel["cases"]), np.log(np.asarray(kernel["counts"], dtype=float)))
        for name, kernel in kept["kernels"].items()
    }
