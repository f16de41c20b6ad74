"""The results of tests: how many count, which do not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mepof.gate.verdict import CheckVerdict, GateVerdict, ImageVerdict
from mepof.report.model import Report

FAILING = "pass on no image"


@dataclass(frozen=True)
class GateView:
    """One gate of a ``check``.

    Attributes:
        counts: how many tests count, in a sentence.
        uncounted: why tests do not count, and their names.
    """

    name: str
    baseline: str
    counts: str
    images: tuple[ImageVerdict, ...]
    uncounted: tuple[tuple[str, tuple[str, ...]], ...]


def checks_of(report: Report) -> tuple[GateView, ...]:
    """The gates of all checks."""
    return tuple(_gate(check, gate) for check in report.checks for gate in check.gates)


def _gate(check: CheckVerdict, gate: GateVerdict) -> GateView:
    return GateView(
        name=gate.gate,
        baseline=check.baseline,
        counts=counts_of(gate, check.baseline),
        images=gate.images,
        uncounted=tuple(uncounted_of(gate)),
    )


def counts_of(gate: GateVerdict, baseline: str) -> str:
    """How many of a gate's tests count, and how many do not."""
    boots = f"{gate.boots} boot{'s' * (gate.boots > 1)}"
    counts = {
        "skipped": gate.skipped,
        "varying": len(gate.flaky),
        f"that {FAILING}": len(gate.failing),
    }
    others = "".join(f", {count} {what}" for what, count in counts.items() if count)
    return f"{gate.passing} of {gate.tests} tests pass in {boots} of {baseline}{others}"


def uncounted_of(gate: GateVerdict) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of tests that do not count, by the reason."""
    if gate.flaky:
        yield "vary from boot to boot", tuple(each.test for each in gate.flaky)
    if gate.failing:
        yield FAILING, gate.failing
    if gate.unbuilt:
        yield "not compiled", tuple(f"{each.name} ({each.reason})" for each in gate.unbuilt)
