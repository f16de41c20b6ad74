"""A plan as a JSON document: what ``g4cc`` writes and ``mepof g4 plan`` prints."""

from __future__ import annotations

from mepof.plan.model import HostInput, Input, Json, Plan, StepInput

SCHEMA = "mepof-plan/1"


def to_document(plan: Plan) -> dict[str, Json]:
    """The plan as JSON values; inputs are ``{"step": ID}`` or ``{"host": PATH}``."""
    return {
        "schema": SCHEMA,
        "program": plan.program,
        "seed": plan.seed,
        "steps": [
            {
                "id": step.id,
                "kind": step.kind,
                "params": dict(step.params),
                "inputs": {name: _input(given) for name, given in step.inputs.items()},
            }
            for step in plan.steps
        ],
        "results": [
            {"name": result.name, "kind": result.kind, "step": result.step}
            for result in plan.results
        ],
    }


def _input(given: Input) -> dict[str, Json]:
    match given:
        case StepInput(step):
            return {"step": step}
        case HostInput(path):
            return {"host": path}
