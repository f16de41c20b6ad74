"""``profile-merge``: the weighted sum of profiles."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from mepof.algorithm.protocol import select
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.profile.artifact import describe, profile_file
from mepof.toolchain import clang


class ProfileMerge:
    """Params: ``weights``, ``algorithm``, ``toolchain``. Inputs: ``profile0``…"""

    kind = "profile-merge"
    phase: Phase = "convert"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return clang.select(str(step.params["toolchain"])).identity()

    def run(self, context: StepContext) -> None:
        name = str(context.params["algorithm"])
        algorithm = select(name)
        toolchain = clang.select(str(context.params["toolchain"]))
        weights = [Fraction(text) for text in cast(list[str], context.params["weights"])]
        weighted = [
            (profile_file(context.inputs[f"profile{number}"]), weight)
            for number, weight in enumerate(weights)
        ]
        profile = context.output / algorithm.profile_name
        describe(context.output, name, algorithm.merge(weighted, profile, toolchain, context.run))


BODY = ProfileMerge()
