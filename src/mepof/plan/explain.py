"""Why a step runs: for ``--dry-run``, and for the line that the progress display shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mepof.plan.action import Action
from mepof.plan.body import StepBody
from mepof.plan.digest import HostDigests
from mepof.plan.fingerprint import Ingredients, body_of
from mepof.plan.model import HostInput, Plan, StepInput
from mepof.plan.store import Store

_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Explanation:
    """What a run would do with a step.

    Attributes:
        state: ``cached``: its result is in the store. ``runs``: it would run. ``depends``: it
            reads from a step that would run, and runs too unless that makes the same as before.
        reasons: why, one phrase each; empty if cached.
        fingerprint: None as long as an input is unknown.
    """

    step: str
    kind: str
    state: Literal["cached", "runs", "depends"]
    reasons: tuple[str, ...]
    fingerprint: str | None


def explain(plan: Plan, store: Store, bodies: Mapping[str, StepBody]) -> tuple[Explanation, ...]:
    """Tell for every step, in the plan's order, whether it would run and why.

    Nothing is run, and nothing is written.

    Raises:
        InputError: a host input is missing, or a kind of step is unknown.
        EnvironmentLack: a tool is missing.
    """
    host = HostDigests(store.host_memory, write=False)
    past: Mapping[str, Action] | None = None
    made: dict[str, str] = {}
    found: list[Explanation] = []
    for step in plan.steps:
        body = body_of(step, bodies)
        sources = {i.step for i in step.inputs.values() if isinstance(i, StepInput)}
        unknown = sorted(source for source in sources if source not in made)
        if unknown:
            reasons = tuple(f"{source} will run" for source in unknown)
            found.append(Explanation(step.id, step.kind, "depends", reasons, None))
            continue
        inputs = {
            name: host.digest(Path(given.path))
            if isinstance(given, HostInput)
            else made[given.step]
            for name, given in step.inputs.items()
        }
        ingredients = Ingredients.of(step, body, inputs, body.identity(step))
        fingerprint = ingredients.fingerprint()
        if is_volatile(body):
            found.append(Explanation(step.id, step.kind, "runs", (VOLATILE,), fingerprint))
            continue
        action = store.find(fingerprint)
        if action is not None:
            made[step.id] = action.artifact.digest
            found.append(Explanation(step.id, step.kind, "cached", (), fingerprint))
            continue
        if past is None:
            past = latest_actions(store)
        reasons = why_it_runs(store, past, step.id, ingredients)
        found.append(Explanation(step.id, step.kind, "runs", reasons, fingerprint))
    return tuple(found)


VOLATILE = "it runs every time"


def is_volatile(body: StepBody) -> bool:
    """Whether a body's steps run every time."""
    return bool(getattr(body, "volatile", False))


def latest_actions(store: Store) -> dict[str, Action]:
    """The most recent action of every step id that the store knows."""
    latest: dict[str, Action] = {}
    for action in store.actions():
        known = latest.get(action.step)
        if known is None or known.made_at < action.made_at:
            latest[action.step] = action
    return latest


def why_it_runs(
    store: Store, past: Mapping[str, Action], step: str, ingredients: Ingredients
) -> tuple[str, ...]:
    """Why a step is not taken from the store, one phrase per reason.

    Args:
        past: what :func:`latest_actions` found.
    """
    if store.action(ingredients.fingerprint()) is not None:
        return ("its result in the store is gone or damaged",)
    before = past.get(step)
    if before is None:
        return ("never made in this store",)
    return changes(before.ingredients, ingredients) or ("not in the store",)


def changes(before: Ingredients, after: Ingredients) -> tuple[str, ...]:
    """What differs between two sets of ingredients, one phrase per difference."""
    found: list[str] = []
    if before.kind != after.kind:
        found.append(f"kind from {before.kind} to {after.kind}")
    if before.version != after.version:
        found.append(f"version of {after.kind} from {before.version} to {after.version}")
    for noun, old, new in (
        ("param", before.params, after.params),
        ("tool", before.tools, after.tools),
    ):
        for name in sorted({*old, *new}):
            if name not in new:
                found.append(f"{noun} {name} is gone (was {_short(old[name])})")
            elif name not in old:
                found.append(f"{noun} {name} is new ({_short(new[name])})")
            elif old[name] != new[name]:
                found.append(f"{noun} {name} from {_short(old[name])} to {_short(new[name])}")
    for name in sorted({*before.inputs, *after.inputs}):
        if before.inputs.get(name) != after.inputs.get(name):
            found.append(f"input {name} changed")
    return tuple(found)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
