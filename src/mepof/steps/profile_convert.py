"""``profile-convert``: converts raw profiles to the profile that the compiler reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from mepof import _engine
from mepof.algorithm.protocol import ALGORITHMS, EXECUTED_OBJECTS, Conversion, Round
from mepof.errors import InputError, WorkError
from mepof.kernel.description import BuildDescription
from mepof.kernel.objects import functions_in, objects_of
from mepof.kernel.selection import Selection
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input, Step
from mepof.profile.artifact import ProfileDescription
from mepof.profile.quality import Quality
from mepof.profile.traces import decompressed, traces_of
from mepof.scenario.collection import Collection
from mepof.spec.profile_convert import ProfileConvert
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

_TRAIN_MORE = "let the scenario run more actions, or check the log of the collection"
#: Branches of another build are the usual reason.
_RECORD_THAT_KERNEL = (
    "record on a machine that runs the kernel in {}: to get it first, run the program with "
    "`set scout off` and without branches"
)


class ProfileConvertBody:
    """Makes the files of all profiles, ``profile.json``, and ``collection.json`` if it is known how
    the raw profile was collected."""

    kind = ProfileConvert.kind
    phase: Phase = "convert"
    version = 4

    def check(self, step: Step) -> None:
        """Refuse what is not a branch trace."""
        raw = ProfileConvert[Input].of(step, step.inputs).raw
        if not isinstance(raw, HostInput):
            return
        path = Path(raw.path)
        if not path.exists():
            raise InputError(f"{path} does not exist")
        with decompressed(traces_of(path)) as traces:
            for trace in traces:
                _engine.trace_format(trace)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = ProfileConvert[Input].of(step, step.inputs)
        engine = {"engine": file_digest(_engine.__file__)}
        outside = ALGORITHMS.identity(*asked.below, asked.algorithm)
        return {**select(asked.toolchain).identity(), **engine, **outside}

    def run(self, context: StepContext) -> None:
        asked = ProfileConvert[Path].of(context.step, context.inputs)
        given = isinstance(context.step.inputs.get("raw"), HostInput)
        raw = traces_of(asked.raw) if given else sorted(asked.raw.glob("raw*"))
        below = _below(asked, context.output)
        tools = Tools(select(asked.toolchain), context.run)
        number = Round(asked.round, asked.profile if asked.round > 1 else None)
        algorithm = ALGORITHMS.get(asked.algorithm)
        with decompressed(raw) if given else nullcontext(raw) as traces:
            conversion = Conversion(tuple(traces), asked.kernel, context.output, tools, number)
            quality = algorithm.convert(conversion)
        if below is not None:
            # The flags of the build that was profiled depend on the profile below alone.
            whole = quality.exact or algorithm.same_build
            quality = replace(quality, exact=whole and below.quality.exact)
        selection = Selection.find(asked.kernel)
        if selection is not None:
            selection.write(context.output)
        elif (asked.kernel / EXECUTED_OBJECTS).exists():
            quality = _of_whole_kernel(quality, asked.kernel)
        if quality.verdict == "poor":
            raise WorkError(
                f"the profile is poor: {'; '.join(quality.reasons)}",
                _RECORD_THAT_KERNEL.format(asked.kernel) if given else _TRAIN_MORE,
            )
        if below is not None:
            objects = below.executed_objects
        elif (executed := algorithm.executed(context.output, tools)) is not None:
            objects = objects_of(asked.kernel, executed)
        else:
            objects = None
        ProfileDescription(
            algorithm="+".join((*asked.below, asked.algorithm)),
            build=BuildDescription.read(asked.kernel).origin,
            quality=quality,
            executed_objects=objects,
        ).write(context.output)
        if asked.raw.is_dir() and (collection := Collection.find(asked.raw)) is not None:
            collection.write(context.output)
        context.note(
            f"{quality.executed} of {quality.functions} functions ran "
            f"({quality.coverage_percent:g} %)" + ("" if selection is None else f"; {selection}")
        )


def _of_whole_kernel(quality: Quality, build: Path) -> Quality:
    """The quality of a profile whose kernel was instrumented in part only: the functions of the
    other files count as functions that never ran."""
    functions = max(quality.functions, sum(map(len, functions_in(build).values())))
    percent = round(100 * quality.executed / functions, 2)
    return replace(quality, functions=functions, coverage_percent=percent)


def _below(asked: ProfileConvert[Path], output: Path) -> ProfileDescription | None:
    """Copy the profiles of the algorithms below to the output; returns their description."""
    if not asked.below:
        return None
    if asked.profile is None:
        raise InputError(f"there is no profile of {'+'.join(asked.below)} to build on")
    for name in asked.below:
        for file in ALGORITHMS.get(name).profile_names:
            shutil.copyfile(asked.profile / file, output / file)
    return ProfileDescription.read(asked.profile)


BODY = ProfileConvertBody()
