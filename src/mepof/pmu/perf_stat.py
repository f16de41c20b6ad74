"""Counting a program's events by ``perf stat``.

perf counts a program and its children from start to end; it does not know the marks. The output is
that of ``perf stat -x`` (perf-stat(1), "CSV FORMAT"): value, unit, event, time for which the event
was counted in nanoseconds, that time as a percentage of the program's, and derived figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mepof.device.shell import NOT_FOUND, Ran
from mepof.errors import EnvironmentLack, WorkError
from mepof.pmu.counter import Event

# Descriptions of events contain commas.
_SEPARATOR = ";"
_MIN_PERCENT = 95.0
_NOT_COUNTED = re.compile(r"<not (?:counted|supported)>")
_VALUE = re.compile(r"\d+(?:\.\d+)?")
# What Ubuntu's `perf` says, a script that looks for the perf of the kernel that runs.
_WRAPPER = re.compile(r"perf not found for kernel (\S+)")
_PARANOID = re.compile(r"perf_event_paranoid setting is (-?\d+)")


@dataclass(frozen=True)
class Count:
    """perf's result for one event.

    Attributes:
        value: the count; perf's estimate if the event was counted for part of the time, None if
            it was not counted.
        percent: of the time, for which the event was counted.
        reason: why there is no value: ``not counted`` or ``not supported``.
    """

    event: Event
    value: int | None
    percent: float
    reason: str = ""

    @property
    def fault(self) -> str | None:
        """Why the count is not reliable; None if it is."""
        if self.value is None:
            return f"{self.event.text} is {self.reason}"
        if self.percent < _MIN_PERCENT:
            return f"{self.event.text} was counted for only {self.percent:g} % of the time"
        return None


def command(events: Sequence[Event], argv: Sequence[str]) -> tuple[str, ...]:
    """The command that runs a program and counts its events.

    The events are not a group, of which perf counts none if the PMU does not have one.
    """
    counted = [word for event in events for word in ("-e", event.text)]
    # Other locales may write numbers with a comma.
    return ("env", "LC_ALL=C", "perf", "stat", "-x", _SEPARATOR, *counted, "--", *argv)


def counts_of(ran: Ran, events: Sequence[Event]) -> tuple[tuple[Count, ...], str]:
    """Parse perf's counts, and separate them from the program's output.

    Args:
        ran: the result of ``command``, both outputs mixed.
        events: those of ``command``.

    Returns:
        The count of each event, and the output of the program.

    Raises:
        EnvironmentLack: perf is missing, is not permitted to count, or does not know an event.
        WorkError: the output is not that of perf.
    """
    counts: list[Count] = []
    rest: list[str] = []
    for line in ran.output.splitlines():
        fields = line.split(_SEPARATOR)
        expected = events[len(counts)] if len(counts) < len(events) else None
        if expected is not None and len(fields) >= 5 and _is(fields[2], expected):
            counts.append(_count(expected, fields))
        else:
            rest.append(line)
    if len(counts) != len(events):
        raise _fault(ran, events)
    return tuple(counts), "\n".join(rest)


def figures_of(counts: Sequence[Count]) -> tuple[dict[str, int], dict[str, str]]:
    """The sum of each metric, and why a metric has none."""
    lacking: dict[str, str] = {}
    sums: dict[str, int] = {}
    for count in counts:
        metric = count.event.metric
        fault = count.fault
        if fault is not None:
            lacking.setdefault(metric, fault)
        sums[metric] = sums.get(metric, 0) + (count.value or 0)
    return {name: value for name, value in sums.items() if name not in lacking}, lacking


def _is(printed: str, event: Event) -> bool:
    """Whether a name that perf printed is that of an event; its modifier may follow."""
    side = event.text[-1]
    return printed in (event.name, f"{event.name}:{side}", f"{event.name}/{side}")


def _count(event: Event, fields: Sequence[str]) -> Count:
    value, percent = fields[0], fields[4]
    try:
        share = float(percent)
    except ValueError as error:
        raise WorkError(f"perf printed no percentage: `{_SEPARATOR.join(fields)}`") from error
    if _NOT_COUNTED.fullmatch(value):
        return Count(event, None, share, value.strip("<>"))
    if not _VALUE.fullmatch(value):
        raise WorkError(f"perf printed no value: `{_SEPARATOR.join(fields)}`")
    return Count(event, round(float(value)) if "." in value else int(value), share)


def _fault(ran: Ran, events: Sequence[Event]) -> Exception:
    output = ran.output
    last = ran.last
    if ran.status == NOT_FOUND and "perf" in output:
        return EnvironmentLack(
            "perf is not installed on the measured machine", "apt-get install linux-perf"
        )
    if wrapper := _WRAPPER.search(output):
        return EnvironmentLack(
            f"`perf` of the measured machine is a script that finds none for kernel {wrapper[1]}",
            "put a real one first on PATH: its directory is such as /usr/lib/linux-tools-*/",
        )
    paranoid = _PARANOID.search(output)
    if paranoid or "No permission" in output or "Access to performance" in output:
        level = f": perf_event_paranoid is {paranoid[1]}" if paranoid else ""
        return EnvironmentLack(
            f"perf is not permitted to count events of the kernel{level}",
            "be root, or run `sysctl kernel.perf_event_paranoid=1`; in a container: "
            "`--cap-add PERFMON` and a seccomp profile that allows `perf_event_open`",
        )
    syntax = re.search(r"Cannot find PMU `([^']*)'|unknown term '?([^']*)'?", output)
    if syntax or "event syntax error" in output:
        named = syntax.groups() if syntax else ()
        what = next((found for found in named if found), "an event")
        names = ", ".join(event.text for event in events)
        return EnvironmentLack(
            f"perf does not know {what} in {names}", "choose the counters of that core"
        )
    if "Workload failed" in output:
        return WorkError(f"perf cannot start the program: {last}")
    return WorkError(f"perf counted nothing: {last}")
