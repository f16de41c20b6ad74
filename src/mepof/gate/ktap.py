"""The kernel's test output: KTAP, the older TAP, and what tests write in place of either.

The format: Documentation/dev-tools/ktap.rst in the kernel's tree. Output of tests is not trusted:
every line that is not a result is ignored, and a plan that does not fit the results is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["pass", "fail", "skip"]

# The kernel log has a time, and with CONFIG_PRINTK_CALLER a caller, before each line.
_LOGGED = re.compile(r"^(?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ")
_RESULT = re.compile(r"^( *)(not )?ok\b(?: +(\d+))?(?: +- +| +|$)(.*)$")
_PLAN = re.compile(r"^( *)1\.\.([0-9]{1,9})\b")
_VERSION = re.compile(r"^( *)K?TAP version \d+")
_SUBTEST = re.compile(r"^( *)# Subtest: (\S.*)$")
# kselftest_harness.h before 6.8 names a test that is skipped only when it starts.
_STARTED = re.compile(r"^# +RUN +(\S+) \.\.\.")
_DIRECTIVE = re.compile(r"(?:^|\s)# *(SKIP|XFAIL|TODO|TIMEOUT)\b:? *(.*)$", re.I)
# Addresses and long numbers differ between two builds of a kernel, which have the same tests.
_VARYING = re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b|\b\d{5,}\b")


@dataclass(frozen=True)
class Point:
    """One result.

    Attributes:
        name: those of the tests around it and its own, joined by ``/``.
        reason: why it was skipped, or what the directive says.
    """

    name: str
    status: Status
    reason: str = ""


@dataclass(frozen=True)
class Parsed:
    """The results in some output.

    Attributes:
        notes: what is wrong with the output, such as fewer results than it announced.
    """

    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()


@dataclass
class _Level:
    """The results at one indentation, below a test that has not ended."""

    points: list[Point] = field(default_factory=list)
    name: str = ""
    planned: int | None = None
    own: int = 0


def parse(text: str) -> Parsed:
    """The results in the output of a test program, or in a kernel's log."""
    return _Parser().parse(text)


def console_part(text: str) -> str:
    """What KUnit wrote to a console: from its first line on; empty if it wrote nothing."""
    lines = [_LOGGED.sub("", line) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if _VERSION.match(line):
            return "\n".join(lines[number:])
    return ""


class _Parser:
    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        self._notes: list[str] = []
        self._started = ""

    def parse(self, text: str) -> Parsed:
        for line in text.splitlines():
            self._line(line.rstrip())
        points: list[Point] = []
        around = ""
        for depth in sorted(self._levels):
            level = self._levels[depth]
            self._check_plan(level)
            # A test that ended in the middle has not named itself with a result.
            around = "/".join(filter(None, (around, level.name if depth else "")))
            points += _below(around, level.points)
        return Parsed(tuple(_distinct(points)), tuple(self._notes))

    def _line(self, line: str) -> None:
        if found := _SUBTEST.match(line):
            # KTAP indents it like the results, TAP 14 like the test itself.
            depth = len(found[1])
            self._level(depth if depth else 4).name = _steady(found[2])
        elif found := _STARTED.match(line):
            self._started = found[1]
        elif found := _PLAN.match(line):
            self._level(len(found[1])).planned = int(found[2])
        elif found := _RESULT.match(line):
            self._result(len(found[1]), found[2] is None, found[3] or "", found[4])

    def _level(self, depth: int) -> _Level:
        return self._levels.setdefault(depth, _Level())

    def _result(self, depth: int, good: bool, number: str, text: str) -> None:
        directive = _DIRECTIVE.search(text)
        said = text[: directive.start()] if directive else text
        name = _steady(said.strip()) or self._started or number or "result"
        self._started = ""
        status: Status = "pass" if good else "fail"
        reason = ""
        if directive is not None:
            reason = directive[2].strip()
            # A time limit of the test's own is a failure; the other directives are not.
            status = "fail" if directive[1].upper() == "TIMEOUT" else "skip"
        children: list[Point] = []
        for deeper in sorted(d for d in self._levels if d > depth):
            level = self._levels.pop(deeper)
            self._check_plan(level)
            children += level.points
        level = self._level(depth)
        level.points += [*_below(name, children), Point(name, status, reason)]
        level.own += 1

    def _check_plan(self, level: _Level) -> None:
        if level.planned is not None and level.planned != level.own:
            where = f"{level.name}: " if level.name else ""
            self._notes.append(
                f"{where}{level.planned} results were announced and {level.own} reported"
            )


def _below(name: str, points: list[Point]) -> list[Point]:
    return [Point(f"{name}/{p.name}" if name else p.name, p.status, p.reason) for p in points]


def _distinct(points: list[Point]) -> Iterator[Point]:
    """The points, with a number after the names that occur again."""
    seen: dict[str, int] = {}
    for point in points:
        seen[point.name] = again = seen.get(point.name, 0) + 1
        yield point if again == 1 else Point(f"{point.name} ({again})", point.status, point.reason)


def _steady(name: str) -> str:
    """A name without what differs between two builds."""
    return _VARYING.sub("…", name)
