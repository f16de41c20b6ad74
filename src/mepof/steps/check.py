"""``check``: compares the test results of images with those of the first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.gate.results import TestResults
from mepof.gate.verdict import CheckVerdict, verdict_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.spec.check import Check


class CheckBody:
    """Makes ``check.json``; an image that fails is a result."""

    kind = Check.kind
    phase: Phase = "other"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: StepContext) -> None:
        asked = Check[Path].of(context.step, context.inputs)
        CheckVerdict(
            baseline=asked.images[0],
            images=asked.images[1:],
            gates=tuple(
                verdict_of(
                    each.gate, asked.images, [TestResults.read(path) for path in each.results]
                )
                for each in asked.gates
            ),
        ).write(context.output)


BODY = CheckBody()
