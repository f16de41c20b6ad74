"""``kernel-build``: a kernel, plain, instrumented, or built with a profile."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import cast

from mepof.algorithm.protocol import BuildAddition, select
from mepof.errors import InputError
from mepof.kernel import arch, kbuild, kconfig
from mepof.kernel.options import options
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.profile.artifact import profile_file
from mepof.toolchain import clang


class KernelBuild:
    """Params: ``arch``, ``config``, ``toolchain``, ``options``, ``stage`` (``plain``,
    ``instrument``, ``use``), ``algorithm``. Inputs: ``source``, ``profile``, ``config0``…"""

    kind = "kernel-build"
    phase: Phase = "build"
    version = 2

    def resources(self, step: Step) -> Resources:
        return Resources(cores=64)

    def identity(self, step: Step) -> Mapping[str, str]:
        toolchain = clang.select(str(step.params["toolchain"]))
        spec = _spec(step, Path("profile"), {}, toolchain)
        flags = (spec.cflags, spec.config_lines)
        return {
            **toolchain.identity(),
            "overlays": kbuild.overlay_digest(spec.overlays),
            "config": kconfig.digest([path for path in spec.fragments if path.is_file()]),
            "flags": sha256(repr(flags).encode()).hexdigest(),
        }

    def run(self, context: StepContext) -> None:
        step = context.step
        toolchain = clang.select(str(step.params["toolchain"]))
        given = context.inputs.get("profile")
        profile = given and _profile_copy(step, given, context.work)
        spec = _spec(step, profile, context.inputs, toolchain)
        places = kbuild.BuildPlaces(
            tree=context.inputs["source"],
            work=context.work,
            output=context.output,
            log=context.log,
            cache=context.cache,
        )
        kbuild.build(
            spec,
            toolchain,
            places,
            context.cores,
            context.run,
            lambda done, total, name: context.progress(done, total, "files", name),
        )


def _spec(
    step: Step, profile: Path | None, inputs: Mapping[str, Path], toolchain: clang.Clang
) -> kbuild.BuildSpec:
    addition = _addition(step, profile, toolchain)
    chosen = [options()[name] for name in _texts(step, "options")]
    return kbuild.BuildSpec(
        arch=arch.get(str(step.params["arch"])),
        fragments=tuple(_fragments(step, inputs)),
        config_lines=(
            *addition.config_lines,
            *(line for option in chosen for line in option.config),
        ),
        cflags=(*(flag for option in chosen for flag in option.cflags), *addition.cflags),
        overlays=addition.overlays,
    )


def _texts(step: Step, key: str) -> Sequence[str]:
    return cast(Sequence[str], step.params.get(key, ()))


def _profile_copy(step: Step, given: Path, work: Path) -> Path:
    """The profile under a path that a list of flags can hold; the user's may have blanks."""
    copy = work / select(str(step.params["algorithm"])).profile_name
    shutil.copyfile(profile_file(given), copy)
    return copy


def _addition(step: Step, profile: Path | None, toolchain: clang.Clang) -> BuildAddition:
    stage = step.params["stage"]
    if stage == "plain":
        return BuildAddition()
    algorithm = select(str(step.params["algorithm"]))
    if stage == "instrument":
        return algorithm.instrument(toolchain)
    if profile is None:
        raise InputError(f"{step.id} has no profile to use")
    return algorithm.use(profile, toolchain)


def _fragments(step: Step, inputs: Mapping[str, Path]) -> Sequence[Path]:
    """The fragment files in order; those of the user's only where the inputs are at hand."""
    found: list[Path] = []
    for number, name in enumerate(_texts(step, "config")):
        if name != "file":
            found += kconfig.paths(name, str(step.params["arch"]))
        elif f"config{number}" in inputs:
            found.append(inputs[f"config{number}"])
    return found


BODY = KernelBuild()
