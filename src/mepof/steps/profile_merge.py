"""``profile-merge``: the weighted sum of profiles."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import InputError
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.profile.artifact import build_of, describe, profile_directory
from mepof.toolchain.protocol import Tools, select


class ProfileMerge:
    """Params: ``weights``, ``algorithm``, ``toolchain``. Inputs: ``profile0``…"""

    kind = "profile-merge"
    phase: Phase = "convert"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return select(str(step.params["toolchain"])).identity()

    def run(self, context: StepContext) -> None:
        name = str(context.params["algorithm"])
        if "+" in name:
            raise InputError(
                f"profiles of `{name}` cannot be merged", "merge those of its lowest algorithm"
            )
        algorithm = ALGORITHMS.get(name)
        tools = Tools(select(str(context.params["toolchain"])), context.run)
        weights = [Fraction(text) for text in cast(list[str], context.params["weights"])]
        files = algorithm.profile_names
        weighted = [
            (profile_directory(context.inputs[f"profile{number}"], files, context.work), weight)
            for number, weight in enumerate(weights)
        ]
        quality = algorithm.merge(weighted, context.output, tools)
        builds = [build_of(directory) for directory, _ in weighted]
        same = builds[0] if all(build == builds[0] for build in builds) else None
        describe(context.output, name, quality, same)


BODY = ProfileMerge()
