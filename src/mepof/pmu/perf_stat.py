"""Counting a program's events by ``perf stat``.

perf counts a program from its start to its end, with all that it starts, and knows nothing of
marks. The output is that of ``perf stat -x`` (perf-stat(1), "CSV FORMAT"): value, unit, event,
time that the event was counted in nanoseconds, the share of the program's time that this is in
percent, and figures that follow from the value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mepof.device.shell import NOT_FOUND, Ran
from mepof.errors import EnvironmentLack, WorkError
from mepof.pmu.counter import Event

# Descriptions of events hold commas.
_SEPARATOR = ";"
_LEAST_PERCENT = 95.0
_NOT_COUNTED = re.compile(r"<not (?:counted|supported)>")
_VALUE = re.compile(r"\d+(?:\.\d+)?")
_PARANOID = re.compile(r"perf_event_paranoid setting is (-?\d+)")


@dataclass(frozen=True)
class Count:
    """What perf says of one event.

    Attributes:
        value: counted; where the event was not counted all the time, perf's estimate; None if
            it was not counted at all.
        percent: share of the time in which it was counted.
        said: instead of a value, ``not counted`` or ``not supported``.
    """

    event: Event
    value: int | None
    percent: float
    said: str = ""

    @property
    def fault(self) -> str | None:
        """Why it is no count to rely on."""
        if self.value is None:
            return f"{self.event.text} is {self.said}"
        if self.percent < _LEAST_PERCENT:
            return f"{self.event.text} was counted for only {self.percent:g} % of the time"
        return None


def command(events: Sequence[Event], argv: Sequence[str]) -> tuple[str, ...]:
    """The command that runs a program and counts events of it.

    The events are in no group: where a PMU lacks one of a group, perf counts none.
    """
    counted = [word for event in events for word in ("-e", event.text)]
    # Else a locale may write numbers with a comma.
    return ("env", "LC_ALL=C", "perf", "stat", "-x", _SEPARATOR, *counted, "--", *argv)


def counts_of(ran: Ran, events: Sequence[Event]) -> tuple[tuple[Count, ...], str]:
    """What perf counted, and what the program said beside it.

    Args:
        ran: what the command of the events left, its two outputs mixed.

    Raises:
        EnvironmentLack: perf is not there, may not count, or does not know an event.
        WorkError: this is not what perf says.
    """
    counts: list[Count] = []
    said: list[str] = []
    for line in ran.output.splitlines():
        fields = line.split(_SEPARATOR)
        expected = events[len(counts)] if len(counts) < len(events) else None
        if expected is not None and len(fields) >= 5 and _is(fields[2], expected):
            counts.append(_count(expected, fields))
        else:
            said.append(line)
    if len(counts) != len(events):
        raise _fault(ran, events)
    return tuple(counts), "\n".join(said)


def figures_of(counts: Sequence[Count]) -> tuple[dict[str, int], dict[str, str]]:
    """The figures of the metrics, and why a metric has none."""
    lacking: dict[str, str] = {}
    sums: dict[str, int] = {}
    for count in counts:
        metric = count.event.metric
        fault = count.fault
        if fault is not None:
            lacking.setdefault(metric, fault)
        sums[metric] = sums.get(metric, 0) + (count.value or 0)
    return {name: value for name, value in sums.items() if name not in lacking}, lacking


def _is(told: str, event: Event) -> bool:
    """Whether perf names an event so: modifiers may follow, or be left out."""
    return told == event.name or told.startswith((f"{event.name}:", f"{event.name}/"))


def _count(event: Event, fields: Sequence[str]) -> Count:
    value, percent = fields[0], fields[4]
    try:
        share = float(percent)
    except ValueError as error:
        raise WorkError(f"perf says `{_SEPARATOR.join(fields)}`, without a percentage") from error
    if _NOT_COUNTED.fullmatch(value):
        return Count(event, None, share, value.strip("<>"))
    if not _VALUE.fullmatch(value):
        raise WorkError(f"perf says `{_SEPARATOR.join(fields)}`, without a value")
    return Count(event, round(float(value)) if "." in value else int(value), share)


def _fault(ran: Ran, events: Sequence[Event]) -> Exception:
    output = ran.output
    last = output.strip().rpartition("\n")[2] or f"status {ran.status}"
    if ran.status == NOT_FOUND and "perf" in output:
        return EnvironmentLack("perf is not installed there", "apt-get install linux-perf")
    paranoid = _PARANOID.search(output)
    if paranoid or "No permission" in output or "Access to performance" in output:
        level = f": perf_event_paranoid is {paranoid[1]}" if paranoid else ""
        return EnvironmentLack(
            f"perf may not count events of the kernel{level}",
            "be root, or `sysctl kernel.perf_event_paranoid=1`",
        )
    syntax = re.search(r"Cannot find PMU `([^']*)'|unknown term '?([^']*)'?", output)
    if syntax or "event syntax error" in output:
        what = next((f" {found}" for found in (syntax.groups() if syntax else ()) if found), "")
        names = ", ".join(event.text for event in events)
        return EnvironmentLack(
            f"perf does not know{what}, asked for {names}", "choose the counters of that core"
        )
    if "Workload failed" in output:
        return WorkError(f"perf could not start the program: {last}")
    return WorkError(f"perf counted nothing: {last}")
