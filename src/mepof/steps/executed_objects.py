"""``executed-objects``: lists the objects of a kernel in which a run executed something."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof import _engine
from mepof.algorithm.executed import executed_code
from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.errors import WorkError
from mepof.kernel.objects import functions_in, objects_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Step
from mepof.spec.executed_objects import ExecutedObjects


class ExecutedObjectsBody:
    """Makes ``kernel.executed_objects``."""

    kind = ExecutedObjects.kind
    phase: Phase = "convert"

    def check(self, step: Step) -> None:
        """There is nothing that a user could get wrong."""

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {"engine": file_digest(_engine.__file__)}

    def run(self, context: StepContext) -> None:
        asked = ExecutedObjects[Path].of(context.step, context.inputs)
        traces = sorted(asked.raw.glob("raw*"))
        functions = executed_code(asked.kernel, traces, context.work / "functions")
        names = frozenset(function.name for function in functions if function.ran)
        objects = objects_of(asked.kernel, names)
        if not objects:
            raise WorkError("no kernel function was executed", "let the scenario run more actions")
        (context.output / EXECUTED_OBJECTS).write_text("\n".join(objects) + "\n")
        context.note(f"{len(objects)} of {len(functions_in(asked.kernel))} files ran")


BODY = ExecutedObjectsBody()
