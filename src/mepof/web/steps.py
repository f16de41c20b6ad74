"""What the steps of a run are doing: state, what they wait for, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.report.text import duration
from mepof.web.catalogue import Entry

#: ``waiting``: it has not begun. ``left``: it has not begun, and the run has ended. ``killed``: it
#: was under way when the run was killed.
StepState = Literal["waiting", "running", "done", "cached", "failed", "killed", "left"]

SIGNS: Mapping[StepState, str] = {
    "waiting": "…",
    "running": "▶",
    "done": "✓",
    "cached": "=",
    "failed": "✗",
    "killed": "✗",
    "left": "·",
}
WORDS: Mapping[StepState, str] = {
    "waiting": "waiting",
    "running": "running",
    "done": "made",
    "cached": "from the store",
    "failed": "failed",
    "killed": "killed",
    "left": "not begun",
}


@dataclass(frozen=True)
class StepRow:
    """A step as the page shows it.

    Attributes:
        inputs: the steps whose artifacts it reads.
        waits: what it waits for, or what its running part has reached.
        took: how long it ran, or took when it was made; empty if it has not run.
        since: when it began, as seconds since the epoch, while it runs.
        journalled: what the journal says of it; None while it has not begun.
    """

    step: str
    kind: str
    state: StepState
    inputs: tuple[str, ...]
    waits: str
    took: str
    since: float | None
    journalled: JournalledStep | None

    @property
    def word(self) -> str:
        """Its state in words."""
        return WORDS[self.state]

    @property
    def sign(self) -> str:
        """Its state as a sign."""
        return SIGNS[self.state]

    @property
    def brief(self) -> str:
        """State and time in a few characters, for the graph."""
        return f"{self.sign} {self.took or self.word}"


def rows_of(entry: Entry, progress: Mapping[str, str]) -> tuple[StepRow, ...]:
    """The steps of a run, in the order of its plan.

    Args:
        progress: of the running steps, in words.
    """
    run = entry.run
    kinds = {p.step: (p.kind, p.inputs) for p in run.planned}
    # Journals of earlier versions have no plan, and a recovery may have taken steps out of it.
    for step in run.steps.values():
        kinds.setdefault(step.step, (step.kind, step.inputs))
    return tuple(
        _row(entry, name, kind, inputs, progress.get(name, ""))
        for name, (kind, inputs) in kinds.items()
    )


def _row(entry: Entry, name: str, kind: str, inputs: tuple[str, ...], progress: str) -> StepRow:
    step = entry.run.steps.get(name)
    inputs = tuple(dict.fromkeys(inputs))
    if step is None:
        state: StepState = "waiting" if entry.alive else "left"
        waits = _waits(entry.run, inputs) if entry.alive else ""
        return StepRow(name, kind, state, inputs, waits, "", None, None)
    if step.state == "running":
        if not entry.alive:
            return StepRow(name, kind, "killed", inputs, "", "", None, step)
        began = datetime.fromisoformat(step.started or step.ended or entry.run.started)
        took = duration(max(0.0, (datetime.now(UTC) - began).total_seconds()))
        return StepRow(name, kind, "running", inputs, progress, took, began.timestamp(), step)
    waits = (step.message or "").partition("\n")[0] if step.state == "failed" else ""
    return StepRow(name, kind, step.state, inputs, waits, duration(step.seconds), None, step)


def _waits(run: JournalledRun, inputs: tuple[str, ...]) -> str:
    missing = [
        name
        for name in inputs
        if (step := run.steps.get(name)) is None or step.state not in ("done", "cached")
    ]
    return f"waits for {', '.join(missing)}" if missing else "waits for cores or a device"
