"""``profile-convert``: from raw profiles to the one that the compiler reads."""

from __future__ import annotations

from collections.abc import Mapping

from mepof.algorithm.protocol import select
from mepof.errors import WorkError
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.profile.artifact import describe, keep_collection
from mepof.toolchain import clang


class ProfileConvert:
    """Params: ``algorithm``, ``toolchain``. Inputs: ``raw``. Makes the profile and
    ``profile.json``."""

    kind = "profile-convert"
    phase: Phase = "convert"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return clang.select(str(step.params["toolchain"])).identity()

    def run(self, context: StepContext) -> None:
        name = str(context.params["algorithm"])
        algorithm = select(name)
        toolchain = clang.select(str(context.params["toolchain"]))
        raw = tuple(sorted(context.inputs["raw"].glob("raw*")))
        profile = context.output / algorithm.profile_name
        quality = algorithm.convert(raw, profile, toolchain, context.run)
        if quality.verdict == "poor":
            raise WorkError(
                f"the profile is poor: {'; '.join(quality.reasons)}",
                "let the scenario do more, or look at the log of the collection",
            )
        describe(context.output, name, quality)
        keep_collection(context.inputs["raw"], context.output)
        context.note(
            f"{quality.executed} of {quality.functions} functions ran "
            f"({quality.coverage_percent:g} %)"
        )


BODY = ProfileConvert()
