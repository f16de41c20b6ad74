"""Settles what a plan leaves open before it runs: the commit that a branch is at.

What is settled stands in the plan, so the same program gives the same fingerprints as long as
nothing has moved, and the plan that a run leaves says what it was made from.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mepof.errors import Interrupted
from mepof.events import Sink, StepNote
from mepof.plan.body import StepBody
from mepof.plan.fingerprint import body_of
from mepof.plan.interrupt import stop_on_signals
from mepof.plan.model import Plan, Step
from mepof.process import Completed, run


@dataclass(frozen=True)
class Pinning:
    """What settling a step may use.

    Attributes:
        cache: that of the store.
        work: scratch directory, removed afterwards.
        run: runs a program like :func:`mepof.process.run`; an interrupt ends it.
        note: shows the user a line.
        cancel: set when the user interrupts.
    """

    cache: Path
    work: Path
    run: Callable[..., Completed]
    note: Callable[[str], None]
    cancel: threading.Event


def pinned(plan: Plan, bodies: Mapping[str, StepBody], cache: Path, sink: Sink) -> Plan:
    """A plan in which nothing can move any more.

    The bodies of steps that can leave something open have ``pin(step, pinning) -> Step``.

    Args:
        cache: that of the store; it is made if a step is settled.
        sink: receives what the bodies say.

    Raises:
        Interrupted: the user asked to stop.
        MepofError: of a body: what a step names does not exist, or a server does not answer.
    """
    open_steps = {
        step.id: pin
        for step in plan.steps
        if (pin := getattr(body_of(step, bodies), "pin", None)) is not None
    }
    if not open_steps:
        return plan
    cancel = threading.Event()
    steps: list[Step] = []
    with stop_on_signals(cancel), tempfile.TemporaryDirectory() as work:
        for step in plan.steps:
            if (pin := open_steps.get(step.id)) is not None:
                note = partial(_note, sink, step.id)
                step = pin(
                    step, Pinning(cache, Path(work), partial(run, cancel=cancel), note, cancel)
                )
            steps.append(step)
            if cancel.is_set():  # while nothing looked at it
                raise Interrupted("interrupted")
    return replace(plan, steps=tuple(steps))


def _note(sink: Sink, step: str, text: str) -> None:
    sink(StepNote(step, text))
