"""Explains why a step runs and how long it will take, for ``--dry-run`` and progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from mepof.plan.action import Action
from mepof.plan.body import StepBody
from mepof.plan.changes import Change, changes
from mepof.plan.digest import HostDigests
from mepof.plan.fingerprint import Ingredients, body_of
from mepof.plan.model import HostInput, Plan, Step, StepInput
from mepof.plan.recovery import known_recovery
from mepof.plan.store import Store


@dataclass(frozen=True)
class Explanation:
    """What a run would do with a step.

    Attributes:
        state: ``cached``: its result is in the store. ``runs``: it would run. ``depends``: it
            reads from a step that would run, and runs unless that makes the same result again.
        needs: the steps and host files that it reads.
        reasons: why, one phrase each; empty if cached.
        fingerprint: None while an input is unknown.
        details: the reasons with the values before and after, digests included.
        seconds: estimated duration: that of the latest step of the same id, or of the same
            kind; None if the store has neither, 0 if cached.
    """

    step: str
    kind: str
    state: Literal["cached", "runs", "depends"]
    needs: tuple[str, ...]
    reasons: tuple[str, ...]
    fingerprint: str | None
    details: tuple[str, ...] = ()
    seconds: float | None = None


def explain(plan: Plan, store: Store, bodies: Mapping[str, StepBody]) -> tuple[Explanation, ...]:
    """Whether each step would run, why, and how long it would take, in the plan's order.

    Nothing is run, and nothing is written. Where an earlier run had to recover from a failure of a
    step, the steps of that recovery are among them.

    Raises:
        InputError: a host input is missing, or a kind of step is unknown.
        EnvironmentLack: a tool is missing.
    """
    host = HostDigests(store.host_memory, write=False)
    past = _Past(store)
    made: dict[str, str] = {}
    found: list[Explanation] = []

    def ingredients_of(step: Step) -> Ingredients:
        inputs = {
            name: host.digest(Path(given.path))
            if isinstance(given, HostInput)
            else made[given.step]
            for name, given in step.inputs.items()
        }
        body = body_of(step, bodies)
        return Ingredients.of(step, body, inputs, body.identity(step))

    def in_store(step: Step) -> bool:
        read = {i.step for i in step.inputs.values() if isinstance(i, StepInput)}
        return read <= made.keys() and store.find(ingredients_of(step).fingerprint()) is not None

    for step in plan.steps:
        body = body_of(step, bodies)
        needs = tuple(i.step if isinstance(i, StepInput) else i.path for i in step.inputs.values())
        sources = {i.step for i in step.inputs.values() if isinstance(i, StepInput)}
        unknown = sorted(source for source in sources if source not in made)
        explained = partial(Explanation, step.id, step.kind, needs=needs)
        if unknown:
            body.identity(step)  # a run would miss a tool of it now, too
            reasons = tuple(f"{source} will run" for source in unknown)
            seconds = past.seconds(step)
            found.append(
                explained(
                    "depends", reasons=reasons, fingerprint=None, details=reasons, seconds=seconds
                )
            )
            continue
        ingredients = ingredients_of(step)
        fingerprint = ingredients.fingerprint()
        why: tuple[Change, ...] = (_plain(VOLATILE),)
        if not is_volatile(body):
            action = store.find(fingerprint)
            if action is not None:
                made[step.id] = action.artifact.digest
                found.append(explained("cached", reasons=(), fingerprint=fingerprint, seconds=0.0))
                continue
            if (known := known_recovery(plan, step, body, in_store)) is not None:
                return explain(known, store, bodies)
            why = why_it_runs(store, past.latest, step, ingredients)
        found.append(
            explained(
                "runs",
                reasons=tuple(change.text for change in why),
                fingerprint=fingerprint,
                details=tuple(change.detail for change in why),
                seconds=past.seconds(step),
            )
        )
    return tuple(found)


class _Past:
    """What the store knows about earlier steps; read on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def latest(self) -> Mapping[str, Action]:
        return latest_actions(self._store)

    def seconds(self, step: Step) -> float | None:
        """Duration of the latest step of the same id, or otherwise of the same kind."""
        same = self.latest.get(step.id)
        if same is not None and same.ingredients.kind == step.kind:
            return same.seconds
        alike = [a for a in self.latest.values() if a.ingredients.kind == step.kind]
        return max(alike, key=lambda action: action.made_at).seconds if alike else None


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
    store: Store, past: Mapping[str, Action], step: Step, ingredients: Ingredients
) -> tuple[Change, ...]:
    """Why a step is not taken from the store.

    Args:
        past: the result of :func:`latest_actions`.
    """
    if store.action(ingredients.fingerprint()) is not None:
        return (_plain("its result in the store is missing or damaged"),)
    before = past.get(step.id)
    if before is None:
        return (_plain("never made in this store"),)
    found = changes(before.ingredients, ingredients, step.inputs)
    return found or (_plain("not in the store"),)


def _plain(text: str) -> Change:
    return Change(text, text)
