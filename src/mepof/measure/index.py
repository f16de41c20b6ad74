"""A suite's index: one number over all its cases, like that of UnixBench."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, fsum, log

from mepof.measure.measurement import Measurement
from mepof.suite.cases import load_suite, suite_names

_SCALE = 10
_NANOSECONDS = 1_000_000_000


def indices(measurement: Measurement) -> dict[str, float]:
    """The index of every metric group whose cases have baselines; higher is better.

    It is ten times the geometric mean, over cases and boots, of operations per second of guest
    time divided by the case's baseline. A group with a missing case has no index.
    """
    found = {}
    for name in suite_names():
        suite = load_suite(name)
        for group in dict.fromkeys(case.metric for case in suite.cases):
            baselines = {
                case.name: case.baseline
                for case in suite.cases
                if case.metric == group and case.baseline is not None
            }
            scores = list(_scores(measurement, name, baselines))
            if baselines and len(scores) == len(baselines) * len(measurement.boots) > 0:
                found[group] = round(_SCALE * exp(fsum(map(log, scores)) / len(scores)), 2)
    return found


def _scores(measurement: Measurement, suite: str, baselines: dict[str, float]) -> Iterator[float]:
    for boot in measurement.boots:
        for case in boot.cases:
            if case.suite == suite and case.case in baselines and case.guest_nanoseconds > 0:
                rate = case.operations * _NANOSECONDS / case.guest_nanoseconds
                yield rate / baselines[case.case]
