"""The time that a run spent: by kind of work, and for every step."""

from __future__ import annotations

from dataclasses import dataclass

from mepof.report.model import Phase, Report
from mepof.report.plots.bars import Segment, line_up

KINDS = {
    "build": "Building",
    "boot": "Booting",
    "run": "Running",
    "convert": "Converting",
    "other": "Other",
}


@dataclass(frozen=True)
class KindTime:
    """A kind of work: seconds of its steps that ran now, and of all its steps."""

    title: str
    now: float
    all: float


@dataclass(frozen=True)
class StepTime:
    """A step, the number of its segment, and its share of the longest step's time."""

    number: int
    phase: Phase
    kind: str
    width: float


@dataclass(frozen=True)
class StepTimes:
    """The section.

    Attributes:
        timeline: a segment for each step.
        kinds: those that took time.
        total: seconds of all steps; ``now`` of those that ran now.
        path: the critical path, in order, and the longest step of it; empty, and None, where
            everything was cached.
        path_seconds: of its steps; ``path_waited`` between them.
    """

    timeline: tuple[Segment, ...]
    steps: tuple[StepTime, ...]
    kinds: tuple[KindTime, ...]
    total: float
    now: float
    path: tuple[Phase, ...]
    longest: Phase | None
    path_seconds: float
    path_waited: float


def step_times_of(report: Report) -> StepTimes:
    """What the section shows."""
    longest = max((p.seconds for p in report.phases), default=0.0) or 1.0
    kinds = (
        KindTime(
            title,
            sum(p.seconds for p in report.phases if p.kind == kind and not p.cached),
            sum(p.seconds for p in report.phases if p.kind == kind),
        )
        for kind, title in KINDS.items()
    )
    path = tuple(
        sorted(
            (p for p in report.phases if p.waited_seconds is not None),
            key=lambda p: p.started_seconds or 0.0,
        )
    )
    return StepTimes(
        timeline=line_up([p.seconds for p in report.phases]),
        steps=tuple(
            StepTime(number, p, KINDS[p.kind], round(100 * p.seconds / longest, 2))
            for number, p in enumerate(report.phases, 1)
        ),
        kinds=tuple(kind for kind in kinds if kind.all),
        total=sum(p.seconds for p in report.phases),
        now=sum(p.seconds for p in report.phases if not p.cached),
        path=path,
        longest=max(path, key=lambda p: p.seconds, default=None),
        path_seconds=sum(p.seconds for p in path),
        path_waited=sum(p.waited_seconds or 0.0 for p in path),
    )
