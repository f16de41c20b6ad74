"""``kernel-build``: a kernel, plain, built to be profiled, or with the profiles of others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import cast

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS, BuildAddition, Use
from mepof.device import agent
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.errors import InputError, WorkError
from mepof.kernel import kbuild, kconfig, objtool
from mepof.kernel.kbuild import FileFlags
from mepof.kernel.options import options
from mepof.kernel.safeguard import EVERYTHING, OptOut, smallest_opt_out
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.profile.artifact import build_of, description, profile_directory
from mepof.suite.cases import load_suite
from mepof.toolchain.protocol import Toolchain, Tools, select

_BOOT_SECONDS = 120.0


class KernelBuild:
    """Params: ``arch``, ``config``, ``toolchain``, ``options``; ``uses``, the algorithms whose
    profiles are in ``profile``; ``collects``, the one that profiles the kernel, or nothing;
    ``layout_seed``, from 1: the order in which the linker lays out the objects' code.
    Inputs: ``source``, ``profile``, ``config0``…; ``guest``, with which the kernel is booted on
    ``device`` with ``seed`` before it is done."""

    kind = "kernel-build"
    phase: Phase = "build"
    version = 3

    def resources(self, step: Step) -> Resources:
        if "device" not in step.params:
            return Resources(cores=64)
        device = DEVICES.get(str(step.params["device"]))
        return Resources(cores=64, device=device.claim(str(step.params["arch"])))

    def identity(self, step: Step) -> Mapping[str, str]:
        toolchain = select(str(step.params["toolchain"]))
        # What the profile is of is not known yet: all flags that its use may bring.
        spec = _spec(step, Path("profile"), {}, Use(toolchain, None, exact=True))
        # Files that a profile names are known with the profile.
        selected = [
            each.cflags if isinstance(each.objects, Path) else each for each in spec.selected
        ]
        flags = (spec.cflags, spec.ldflags, spec.variables, spec.config_lines, selected)
        booted = {}
        if "device" in step.params:
            device = DEVICES.get(str(step.params["device"]))
            check = " ".join(load_suite("mepof").selfcheck)
            booted = {**device.identity(str(step.params["arch"])), "self-check": check}
        return {
            **toolchain.identity(),
            **booted,
            "overlays": kbuild.overlay_digest(spec.overlays),
            "config": kconfig.digest([path for path in spec.fragments if path.is_file()]),
            "flags": sha256(repr(flags).encode()).hexdigest(),
        }

    def run(self, context: StepContext) -> None:
        step = context.step
        names = _texts(step, "uses")
        toolchain = select(str(step.params["toolchain"]))
        source = context.inputs["source"]
        profile = origin = None
        use = Use(toolchain, None)
        if "profile" in context.inputs:
            files = [file for name in names for file in ALGORITHMS.get(name).profile_names]
            profile = profile_directory(context.inputs["profile"], files, context.work)
            origin = build_of(profile)
            if origin is not None:
                exact = description(profile)[1].exact
                use = Use(toolchain, origin.get("source") == source.name, exact)
        spec = _spec(step, profile, context.inputs, use)
        if any(ALGORITHMS.get(name).same_build for name in names):
            if origin is None:
                raise InputError(
                    f"nothing tells of which build the profile of {'+'.join(names)} is",
                    "it fits no other: use it in the program that makes it",
                )
            spec = replace(spec, same_as=origin)
        if "guest" in context.inputs:
            assert profile is not None
            _build_safely(context, spec, toolchain, profile, use)
            if not use.same_source:
                _tell_drift(context, profile)
        else:
            if warned := _build(context, spec, toolchain):
                context.note(objtool.told(warned))


def _build(
    context: StepContext, spec: kbuild.BuildSpec, toolchain: Toolchain
) -> frozenset[objtool.Warned]:
    places = kbuild.BuildPlaces(
        tree=context.inputs["source"],
        work=context.work,
        output=context.output,
        log=context.log,
        cache=context.cache,
    )
    return kbuild.build(
        spec,
        Tools(toolchain, context.run),
        places,
        context.cores,
        lambda done, total, name: context.progress(done, total, "files", name),
    )


def _build_safely(
    context: StepContext,
    spec: kbuild.BuildSpec,
    toolchain: Toolchain,
    profile: Path,
    use: Use,
) -> None:
    """Build a kernel that boots, without the profile where it does not with it."""
    algorithms = [ALGORITHMS.get(name) for name in _texts(context.step, "uses")]
    opt_out_flags = _addition(context.step, profile, use).opt_out
    released = ""
    # Whatever objtool warns of without the profile is not for the profile to answer.
    accepted: frozenset[objtool.Warned] = frozenset()

    def trial(opt_out: OptOut) -> WorkError | None:
        nonlocal released, accepted
        selected = [*spec.selected, FileFlags(opt_out.files, opt_out_flags)]
        profiles = dict(spec.profiles)
        for file, functions in opt_out.functions.items():
            for number, algorithm in enumerate(algorithms):
                name = f"spared-{sha256(file.encode()).hexdigest()[:8]}-{number}"
                added = algorithm.spare(
                    profile, functions, context.work / name, Tools(toolchain, context.run)
                )
                selected.append(FileFlags((file,), added.cflags))
                profiles |= added.profiles
        try:
            tried = replace(spec, selected=tuple(selected), profiles=profiles)
            warned = _build(context, tried, toolchain)
            if opt_out == EVERYTHING:
                accepted = warned
            elif not warned <= accepted:
                raise objtool.Unclean(warned - accepted)
            released = _boot(context)
        except WorkError as error:
            return error
        return None

    opt_out = OptOut()
    failure = trial(opt_out)
    if failure is not None:
        opt_out = smallest_opt_out(
            failure, trial, lambda: kbuild.functions_in(context.output), context.note
        )
        if opt_out == OptOut():
            context.note("objtool says the same without the profile: nothing is left out of it")
            failure = None
        else:
            context.note(f"left out of the profile: {_told(opt_out)}")
    safety = {
        "booted": True,
        "self_check": "passed",
        "release": released,
        "opt_out": {"files": opt_out.files, "functions": opt_out.functions},
        "failure": None if failure is None else failure.message,
        "objtool": [str(each) for each in sorted(accepted)],
    }
    (context.output / "safety.json").write_text(json.dumps(safety, indent=1) + "\n")


def _tell_drift(context: StepContext, profile: Path) -> None:
    """Say how much of a profile of another kernel fits this one."""
    for name in _texts(context.step, "uses"):
        drift = ALGORITHMS.get(name).drift(profile, context.output / "vmlinux")
        if drift is not None:
            (context.output / "drift.json").write_text(json.dumps(drift, indent=1) + "\n")
            context.note(f"{drift['matched_percent']:.1f} % of the profile's samples still match")


def _told(opt_out: OptOut) -> str:
    functions = (f"{name}() in {file}" for file, f in opt_out.functions.items() for name in f)
    return ", ".join([*opt_out.files, *functions])


def _boot(context: StepContext) -> str:
    """Boot the kernel that was built and have it check itself; its release."""
    params = context.params
    check = agent.Exec(load_suite("mepof").selfcheck, _BOOT_SECONDS)
    session = Session(
        arch=str(params["arch"]),
        kernel=context.output / "kernel",
        initramfs=context.inputs["guest"] / INITRAMFS,
        requests=(check,),
        seed=cast(int, params["seed"]),
    )
    device = DEVICES.get(str(params["device"]))
    outcome = device.boot(session, context.work / "boot", context.run, lambda count: None)
    agent.expect_success(check, outcome.replies[0])
    context.note(f"Linux {outcome.release} booted and passed its self-check")
    return outcome.release


def _spec(
    step: Step, profile: Path | None, inputs: Mapping[str, Path], use: Use
) -> kbuild.BuildSpec:
    addition = _addition(step, profile, use)
    chosen = [options()[name] for name in _texts(step, "options")]
    return kbuild.BuildSpec(
        arch=arch.get(str(step.params["arch"])),
        fragments=tuple(_fragments(step, inputs)),
        config_lines=(
            *addition.config_lines,
            *(line for option in chosen for line in option.config),
        ),
        cflags=(*(flag for option in chosen for flag in option.cflags), *addition.cflags),
        ldflags=(*addition.ldflags, *_layout(step)),
        variables=addition.variables,
        overlays=addition.overlays,
        selected=(*(each for option in chosen for each in option.files), *addition.selected),
        profiles=addition.profiles,
    )


def _layout(step: Step) -> tuple[str, ...]:
    """The flag by which the linker shuffles code within each place that its script has for it."""
    seed = step.params.get("layout_seed")
    return () if seed is None else (f"--shuffle-sections=.text*={seed}",)


def _addition(step: Step, profile: Path | None, use: Use) -> BuildAddition:
    """What the profiles that are used add, and the algorithm that profiles the kernel."""
    added = BuildAddition()
    for name in _texts(step, "uses"):
        if profile is None:
            raise InputError(f"{step.id} has no profile to use")
        added += ALGORITHMS.get(name).use(profile, use)
    collects = str(step.params.get("collects", ""))
    return added + ALGORITHMS.get(collects).instrument(use.toolchain) if collects else added


def _texts(step: Step, key: str) -> Sequence[str]:
    return cast(Sequence[str], step.params.get(key, ()))


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
