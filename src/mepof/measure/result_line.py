"""The result line that a case prints (docs/kbench.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mepof.errors import WorkError
from mepof.measure.measurement import Unsupported
from mepof.suite.cases import Case

SKIPPED = 77
"""Exit status of a case that cannot run, as of automake's test programs."""

_FIELD = re.compile(r"(\w+)=(\S+)")
# Of a number of 64 bits.
_DIGITS = 19
_READ = ("operations", "elapsed_ns", "round")


@dataclass(frozen=True)
class Result:
    """The result line of a case that succeeded.

    Attributes:
        operations: done in the measured interval.
        nanoseconds: of the measured interval, by the machine's clock.
        check: the result that the case computed.
        figures: every other number.
    """

    operations: int
    nanoseconds: int
    check: str
    figures: Mapping[str, int]


def result_of(case: Case, text: str) -> Result:
    """Parse the result line of a case that ran.

    Args:
        text: its output.

    Raises:
        WorkError: there is no result line, or its check failed.
    """
    fields = dict(_FIELD.findall(text))
    sound = fields.get("case") == case.name and fields.get("check") == "ok"
    counted = (fields.get("operations", ""), fields.get("elapsed_ns", ""))
    if not sound or not all(_is_number(number) for number in counted):
        raise _no_result_line(case, text)
    figures = {n: int(t) for n, t in fields.items() if n not in _READ and _is_number(t)}
    return Result(int(counted[0]), int(counted[1]), fields["check"], figures)


def unsupported_of(case: Case, text: str) -> Unsupported:
    """Parse what is missing for a case that cannot run.

    Args:
        text: its output.

    Raises:
        WorkError: there is no result line, or it does not say what is missing.
    """
    fields = dict(_FIELD.findall(text))
    if fields.get("case") != case.name or "needs" not in fields:
        raise _no_result_line(case, text)
    return Unsupported(suite=case.suite, case=case.name, needs=fields["needs"])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def _no_result_line(case: Case, text: str) -> WorkError:
    return WorkError(f"the case {case.name} printed no valid result line: {text[:80]!r}")
