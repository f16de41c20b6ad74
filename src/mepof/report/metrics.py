"""The main metrics, and the words for less and more of each."""

from __future__ import annotations

from collections.abc import Mapping

from mepof.measure.metrics import METRICS, Metric
from mepof.statistics import Verdict

#: What a reader judges by. Events explain these, and controls must not change.
MAIN: tuple[Metric, ...] = tuple(m for m in METRICS if not (m.control or m.may_be_none))

#: The sign that stands beside the word and the colour of a verdict.
SIGNS: Mapping[Verdict, str] = {
    "faster": "▼",
    "slower": "▲",
    "no difference": "=",
    "not enough data": "?",
}

#: Whether a verdict is good news; also the page's style class.
TONES: Mapping[Verdict, str] = {
    "faster": "better",
    "slower": "worse",
    "no difference": "no-difference",
    "not enough data": "not-enough-data",
}


_TIMES = frozenset(metric.name for metric in METRICS if metric.of_time)


def less_word(metric: str) -> str:
    """``fewer`` for what is counted, ``less`` for time.

    Args:
        metric: its name in ``report.json``.
    """
    return "less" if metric in _TIMES else "fewer"


def verdict_word(verdict: Verdict, metric: str) -> str:
    """What a verdict means for a metric: an image with fewer instructions may not be faster."""
    match verdict:
        case "faster":
            return less_word(metric)
        case "slower":
            return "more"
        case _:
            return verdict
