"""``profile-convert``: from raw profiles to the one that the compiler reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from mepof import _engine
from mepof.algorithm.protocol import ALGORITHMS, Conversion
from mepof.errors import WorkError
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Step
from mepof.profile.artifact import describe, description, keep_collection
from mepof.toolchain.protocol import Tools, select


class ProfileConvert:
    """Params: ``algorithm``, ``toolchain``; ``below``, those of the stack whose profile is in
    ``profile``. Inputs: ``raw``, what was collected or the user's own recording; ``kernel``, the
    build that ran; ``profile``. Makes the files of all profiles and ``profile.json``."""

    kind = "profile-convert"
    phase: Phase = "convert"
    version = 2

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        engine = {"engine": file_digest(_engine.__file__)}
        return {**select(str(step.params["toolchain"])).identity(), **engine}

    def run(self, context: StepContext) -> None:
        name = str(context.params["algorithm"])
        given = context.inputs["raw"]
        raw = tuple(sorted(given.glob("raw*"))) if given.is_dir() else (given,)
        build = context.inputs["kernel"]
        below = cast(list[str], context.params.get("below", []))
        for part in below:
            for file in ALGORITHMS.get(part).profile_names:
                shutil.copyfile(context.inputs["profile"] / file, context.output / file)
        tools = Tools(select(str(context.params["toolchain"])), context.run)
        quality = ALGORITHMS.get(name).convert(Conversion(raw, build, context.output, tools))
        if below:
            exact = description(context.inputs["profile"])[1].exact
            quality = replace(quality, exact=quality.exact and exact)
        if quality.verdict == "poor":
            raise WorkError(
                f"the profile is poor: {'; '.join(quality.reasons)}",
                "let the scenario do more, or look at the log of the collection",
            )
        origin = json.loads((build / "build.json").read_text(encoding="utf-8"))["origin"]
        describe(context.output, "+".join((*below, name)), quality, origin)
        if given.is_dir():
            keep_collection(given, context.output)
        context.note(
            f"{quality.executed} of {quality.functions} functions ran "
            f"({quality.coverage_percent:g} %)"
        )


BODY = ProfileConvert()
