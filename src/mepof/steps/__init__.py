"""The step bodies: one file per kind of step, found by its name. Bodies call other packages, but
never each other."""

from mepof.plan.body import StepBody
from mepof.registry import Registry

BODIES: Registry[StepBody] = Registry("mepof.steps", "BODY", "kind of step", StepBody)
