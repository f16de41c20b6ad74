"""Plans that change while they run: another way to what a step needs, after it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mepof.plan.body import StepBody
from mepof.plan.model import Input, Plan, Step, StepInput


def recovered(plan: Plan, step: Step, body: StepBody, error: Exception | None) -> Plan | None:
    """The plan in which a step can succeed that failed, or None if its body knows none.

    Args:
        error: why it failed; None if it did not run.
    """
    recover = getattr(body, "recover", None)
    found: Plan | None = None if recover is None else recover(plan, step, error)
    return found


def known_recovery(
    plan: Plan, step: Step, body: StepBody, in_store: Callable[[Step], bool]
) -> Plan | None:
    """The recovery of an earlier run, so that the step need not fail again.

    Args:
        in_store: whether the store has the result of a step that reads only finished steps.
    """
    known = recovered(plan, step, body, None)
    if known is None:
        return None
    before = {each.id for each in plan.steps}
    new = [each for each in known.steps if each.id not in before]
    return known if all(in_store(each) for each in new) else None


def replaced(plan: Plan, old: str, new: Step) -> Plan:
    """The plan with one more step, which all that read the artifact of ``old`` read instead.

    Args:
        new: may itself read what ``old`` reads, and ``old``.
    """

    def rewired(step: Step) -> Step:
        given: dict[str, Input] = {
            name: StepInput(new.id) if source == StepInput(old) else source
            for name, source in step.inputs.items()
        }
        return replace(step, inputs=given)

    at = next(n for n, step in enumerate(plan.steps, 1) if step.id == old)
    steps = (*map(rewired, plan.steps[:at]), new, *map(rewired, plan.steps[at:]))
    return replace(plan, steps=tuple(_in_order(steps)))


def affected(plan: Plan, before: Plan) -> frozenset[str]:
    """The steps of a plan that differ from those of an earlier one, and all that read of them."""
    known = {step.id: step for step in before.steps}
    found: set[str] = set()
    for step in plan.steps:
        if known.get(step.id) != step or not found.isdisjoint(_read(step)):
            found.add(step.id)
    return frozenset(found)


def _in_order(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps in the same order, except that each comes after those that it reads."""
    by_id = {step.id: step for step in steps}
    done: set[str] = set()

    def visit(step: Step) -> Iterator[Step]:
        if step.id in done:
            return
        done.add(step.id)
        for name in _read(step):
            yield from visit(by_id[name])
        yield step

    for step in steps:
        yield from visit(step)


def _read(step: Step) -> list[str]:
    return [given.step for given in step.inputs.values() if isinstance(given, StepInput)]
