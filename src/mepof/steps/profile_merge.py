"""``profile-merge``: merges profiles into their weighted sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mepof.algorithm.external import check_profile
from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import InputError
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.profile.artifact import ProfileDescription, executed_objects, profile_directory
from mepof.spec.profile_merge import ProfileMerge
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools


class ProfileMergeBody:
    """Makes the files of the merged profile and ``profile.json``."""

    kind = ProfileMerge.kind
    phase: Phase = "convert"
    version = 2

    def check(self, step: Step) -> None:
        """Refuse files that are not profiles of the algorithm."""
        asked = ProfileMerge[Input].of(step, step.inputs)
        for each in asked.profiles:
            if isinstance(each.profile, HostInput):
                check_profile(Path(each.profile.path), (asked.algorithm,), asked.toolchain)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = ProfileMerge[Input].of(step, step.inputs)
        outside = ALGORITHMS.identity(*asked.algorithm.split("+"))
        return {**select(asked.toolchain).identity(), **outside}

    def run(self, context: StepContext) -> None:
        asked = ProfileMerge[Path].of(context.step, context.inputs)
        if "+" in asked.algorithm:
            raise InputError(
                f"profiles of `{asked.algorithm}` cannot be merged",
                "merge profiles of its first algorithm",
            )
        algorithm = ALGORITHMS.get(asked.algorithm)
        weighted = [
            (profile_directory(each.profile, algorithm.profile_names, context.work), each.weight)
            for each in asked.profiles
        ]
        tools = Tools(select(asked.toolchain), context.run)
        quality = algorithm.merge(weighted, context.output, tools)
        known = [ProfileDescription.find(directory) for directory, _ in weighted]
        builds = [None if each is None else each.build for each in known]
        same = builds[0] if all(build == builds[0] for build in builds) else None
        exact = all(each is not None and each.quality.exact for each in known)
        ProfileDescription(
            algorithm=asked.algorithm,
            build=same,
            quality=replace(quality, exact=exact),
            executed_objects=executed_objects(known),
        ).write(context.output)


BODY = ProfileMergeBody()
