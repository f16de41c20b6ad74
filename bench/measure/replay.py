"""Steps that only take their time, for runs that a simulation is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from mepof.plan.body import Phase, Resources, StepBody, StepContext
from mepof.plan.model import Step


class Replay:
    """Waits, whole or in parts."""

    kind = "replay"
    phase: Phase = "other"

    def resources(self, step: Step) -> Resources:
        parts = int(str(step.params["parts"]))
        return Resources(int(str(step.params["cores"])), part=Resources() if parts else None)

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: StepContext) -> None:
        names = [f"part {number}" for number in range(int(str(context.params["parts"])))]
        if not names:
            self.part(context, "")
        elif context.parts is not None:
            with ThreadPoolExecutor(context.parts.width) as pool:
                list(pool.map(context.parts.call, names))
        (context.output / "name").write_text(context.step.id)

    def part(self, context: StepContext, name: str) -> bytes:
        context.cancel.wait(float(str(context.params["seconds"])))
        return b""


def bodies() -> Mapping[str, StepBody]:
    """The one body."""
    return {"replay": Replay()}
