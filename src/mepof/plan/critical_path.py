"""The critical path of a run: the chain of steps that decided when it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mepof.plan.journal import JournalledRun, JournalledStep


@dataclass(frozen=True)
class Link:
    """A step of the critical path.

    Attributes:
        seconds: how long it ran.
        waited: seconds from the end of its last input to its start, in which it waited for cores
            or a device.
    """

    step: str
    seconds: float
    waited: float


def critical_path(run: JournalledRun) -> tuple[Link, ...]:
    """The critical path of a run, first step first.

    Each step is the input of the next one that ended last. Steps that came from the store took no
    time and are left out, as is a step that has not ended.
    """
    ran = {s.step: s for s in run.steps.values() if s.state == "done" and s.started and s.ended}
    links: list[Link] = []
    last = max(ran.values(), key=_ended, default=None)
    while last is not None:
        inputs = [ran[name] for name in last.inputs if name in ran]
        before = max(inputs, key=_ended, default=None)
        ready = datetime.fromisoformat(run.started) if before is None else _ended(before)
        waited = (_started(last) - ready).total_seconds()
        seconds = (_ended(last) - _started(last)).total_seconds()
        links.append(Link(last.step, round(seconds, 3), round(max(0.0, waited), 3)))
        last = before
    return tuple(reversed(links))


def _started(step: JournalledStep) -> datetime:
    assert step.started is not None
    return datetime.fromisoformat(step.started)


def _ended(step: JournalledStep) -> datetime:
    assert step.ended is not None
    return datetime.fromisoformat(step.ended)
