"""Events of a run, for the progress display, the log and the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StepStarted:
    """A step starts; ``reason`` says why its result does not come from the store."""

    step: str
    kind: str
    reason: str


@dataclass(frozen=True)
class StepProgress:
    """How much of its work a step has done, in its own unit (``files``, ``actions``, ``boots``).

    ``total`` is None if unknown, and the maximum if the step may end earlier.
    """

    step: str
    done: int
    total: int | None
    unit: str
    text: str = ""


@dataclass(frozen=True)
class StepNote:
    """A line to show to the user while the step runs."""

    step: str
    text: str


@dataclass(frozen=True)
class StepFinished:
    """A step has its artifact, either new or found in the store (``cached``)."""

    step: str
    kind: str
    digest: str
    seconds: float
    cached: bool


@dataclass(frozen=True)
class StepFailed:
    """A step failed with an expected error, or was interrupted.

    ``log`` is the path of its log, if it has one. If it is ``retried``, the run goes on with a plan
    in which the step can succeed.
    """

    step: str
    kind: str
    message: str
    seconds: float
    log: str | None
    interrupted: bool = False
    retried: bool = False


@dataclass(frozen=True)
class ConsoleTaken:
    """A step has taken the user's terminal; nothing else may write to it."""

    step: str


@dataclass(frozen=True)
class ConsoleReturned:
    """The step has returned the terminal."""

    step: str


Event = (
    StepStarted
    | StepProgress
    | StepNote
    | StepFinished
    | StepFailed
    | ConsoleTaken
    | ConsoleReturned
)
Sink = Callable[[Event], None]


def unheard(event: Event) -> None:
    """A sink for callers that show nothing."""
