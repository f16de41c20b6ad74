"""The step bodies: one file for each kind of step, found by its name. They call the other
packages and never each other."""

from mepof.plan.body import StepBody
from mepof.registry import Registry

BODIES: Registry[StepBody] = Registry("mepof.steps", "BODY", "kind of step")
