"""``profile-renew``: adds what is left of an old profile to a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mepof.algorithm.external import check_profile
from mepof.algorithm.protocol import ALGORITHMS
from mepof.kernel.description import Origin
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.profile.aging import Decay
from mepof.profile.artifact import ProfileDescription, executed_objects, profile_directory
from mepof.scenario.collection import Collection
from mepof.spec.profile_renew import ProfileRenew
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools


class ProfileRenewBody:
    """Makes the files of the profile, ``profile.json``, and the new profile's
    ``collection.json``."""

    kind = ProfileRenew.kind
    phase: Phase = "convert"

    def check(self, step: Step) -> None:
        """Refuse a file that is not a profile of the algorithm and the toolchain."""
        asked = ProfileRenew[Input].of(step, step.inputs)
        for each in (asked.new, asked.old):
            if isinstance(each, HostInput):
                check_profile(Path(each.path), (asked.algorithm,), asked.toolchain)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = ProfileRenew[Input].of(step, step.inputs)
        outside = ALGORITHMS.identity(asked.algorithm)
        return {**select(asked.toolchain).identity(), **outside}

    def run(self, context: StepContext) -> None:
        asked = ProfileRenew[Path].of(context.step, context.inputs)
        algorithm = ALGORITHMS.get(asked.algorithm)
        tools = Tools(select(asked.toolchain), context.run)
        names = algorithm.profile_names
        new = profile_directory(asked.new, names, context.work)
        old = profile_directory(asked.old, names, context.work)
        newer, older = ProfileDescription.find(new), ProfileDescription.find(old)
        builds = [None if known is None else known.build for known in (newer, older)]
        sources = {None if build is None else build.source for build in builds}
        same_source = len(sources) == 1 and None not in sources
        if (other := _other(builds)) is not None:
            context.note(other)
        decay = Decay(asked.decay, same_source, asked.part)
        quality, left = algorithm.renew(new, old, decay, context.output, tools)
        context.note(str(left))
        exact = all(known is not None and known.quality.exact for known in (newer, older))
        ProfileDescription(
            algorithm=asked.algorithm,
            # Its lines are those of the new profile's source only if the old one has the same.
            build=builds[0] if same_source else None,
            quality=replace(quality, exact=exact),
            executed_objects=executed_objects((newer, older)),
        ).write(context.output)
        if (collection := Collection.find(new)) is not None:
            collection.write(context.output)


def _other(builds: Sequence[Origin | None]) -> str | None:
    """What the builds that two profiles are of do not share, although their source is the same.
    Configurations of two sources, and of two compilers, always differ."""
    new, old = builds
    if new is None or old is None or new.source != old.source:
        return None
    for what, of in (("compiler", "by another compiler"), ("config", "in another configuration")):
        if what in new.differences(old):
            return f"the old profile is of a build {of}: compare the image with `plain`"
    return None


BODY = ProfileRenewBody()
