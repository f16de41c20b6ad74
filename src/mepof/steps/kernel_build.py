"""``kernel-build``: builds a kernel, plain, instrumented, or optimised with profiles."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from mepof import arch
from mepof.algorithm.external import check_profile
from mepof.algorithm.protocol import ALGORITHMS, EXECUTED_OBJECTS, Use
from mepof.device import module_archive
from mepof.device.protocol import DEVICES
from mepof.errors import InputError, WorkError, listed
from mepof.kernel import (
    base,
    companions,
    exclusions,
    installed,
    kbuild,
    kconfig,
    landing_pads,
    objtool,
    outside,
    rewriting,
)
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.kernel.configure import DROPPED
from mepof.kernel.description import BuildDescription, Safety
from mepof.kernel.modules import unbuilt
from mepof.kernel.objects import functions_in
from mepof.kernel.options import options
from mepof.kernel.release import release_of
from mepof.kernel.selection import Selection, fitting
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Plan, Step, StepInput
from mepof.spec.kernel_build import KernelBuild
from mepof.spec.kernel_source import KernelSource
from mepof.spec.profile_convert import ProfileConvert
from mepof.steps.kernel_ingredients import (
    Ingredients,
    algorithms_of,
    cold_small,
    config_files,
    flags_only,
    ingredients_of,
    may_have_modules,
    requirements,
)
from mepof.steps.kernel_trials import KernelTrials
from mepof.suite.cases import selfcheck
from mepof.toolchain.named import check_files, check_requirements, select
from mepof.toolchain.programs import banner_of, identified
from mepof.toolchain.protocol import Tools

# MiB that a link takes at most: estimates, by which a cluster puts few of them on one machine.
_MEMORY, _LTO_MEMORY = 3072, 8192
# What the identity calls the files that the configuration names.
_OUTSIDE = "files of the config"


# What decides what a kernel is compiled of and how. Kernels have the level O2 without an option.
_OF_BUILD: Mapping[str, Callable[[KernelBuild[Input]], object]] = {
    "architecture": lambda asked: asked.arch,
    "configuration": lambda asked: asked.config,
    "set of options": lambda asked: {*asked.options} - {"O2"},
    "source": lambda asked: asked.source,
    "set of exclusions": lambda asked: asked.exclude,
}


class KernelBuildBody:
    """Builds the kernel that a :class:`KernelBuild` describes."""

    kind = KernelBuild.kind
    phase: Phase = "build"
    version = 4

    def check(self, step: Step) -> None:
        """Refuse an unknown architecture, a toolchain that does not have the required
        capabilities, or whose directory has no compiler for the architecture, a config that is not
        Kconfig lines or not for the algorithm, and a profile of another algorithm."""
        asked = KernelBuild[Input].of(step, step.inputs)
        target = arch.get(asked.arch)
        _, colon, directory = asked.toolchain.partition(":")
        if colon and Path(directory).exists():
            select(asked.toolchain).tool("compiler", target)
        required = requirements(asked)
        check_requirements(asked.toolchain, required)
        own = [Path(part.path) for part in asked.config if isinstance(part, HostInput)]
        # What does not exist is reported with its position.
        files = [path for path in config_files(asked, own) if path.exists()]
        kconfig.check_arch(files, target)
        config = kconfig.merge(files)
        if any("binary-layout" in each for each in required.values()):
            rewriting.check_wanted(config, asked.arch)
            select(asked.toolchain).banner("rewriter")
        if any("basic-block-sections" in each for each in required.values()):
            landing_pads.check_placed(config, asked.arch)
        if isinstance(asked.profile, HostInput):
            check_profile(Path(asked.profile.path), asked.uses, asked.toolchain)

    def check_in(self, step: Step, plan: Plan) -> None:
        """Refuse a config that lies over what the kernel does not have, and exclusions that are not
        in it, if it is a directory; and a profile that fits one build only, of another one."""
        asked = KernelBuild[Input].of(step, step.inputs)
        _check_same_build(asked, plan)
        if not isinstance(asked.source, StepInput):
            return
        source = plan.step(asked.source.step)
        origin = KernelSource[Input].of(source, source.inputs).origin
        if isinstance(origin, HostInput) and Path(origin.path).is_dir():
            own = [Path(part.path) for part in asked.config if isinstance(part, HostInput)]
            config = kconfig.merge([*config_files(asked, own)])
            base.check(Path(origin.path), arch.get(asked.arch), config)
            exclusions.objects(Path(origin.path), asked.exclude)

    def resources(self, step: Step) -> Resources:
        asked = KernelBuild[Input].of(step, step.inputs)
        claimed = None if asked.boot is None else DEVICES.get(asked.boot.device).claim(asked.arch)
        lto = any("llvm-lto" in options()[name].requires for name in asked.options)
        memory = _LTO_MEMORY if lto else _MEMORY
        # Kernels with a profile begin with the objects of those without.
        plain = not asked.uses and asked.instrumented is None
        return Resources(64, claimed, True, frozenset({asked.arch}), memory, first=plain)

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KernelBuild[Input].of(step, step.inputs)
        toolchain = select(asked.toolchain)
        if asked.instrumented is not None:
            required = ALGORITHMS.get(asked.instrumented.algorithm).requires
            check_files(toolchain, arch.get(asked.arch), required)
        # The origin of the profile is not known yet: take all flags that using it may add.
        use = Use(toolchain, None, exact=True, cold_small=cold_small(asked))
        profile = None if asked.profile is None else Path("profile")
        own = [Path(part.path) for part in asked.config if isinstance(part, HostInput)]
        with_modules = may_have_modules(asked, own)
        spec = Ingredients(asked, (), profile, use, with_modules).spec()
        rewritten = spec.rewriting is not None and spec.rewriting.counts is not None
        # The files that a profile selects are known only once it exists.
        selected = [
            each.cflags if isinstance(each.objects, Path) else each for each in spec.selected
        ]
        flags = (
            *(spec.cflags, spec.ldflags, spec.variables, spec.config_lines, selected),
            *([spec.link_order] if spec.link_order else ()),
            *([rewriting.OPTIONS] if rewritten else ()),
        )
        merged = _merged(config_files(asked, own))
        beside = companions.identity(merged)
        if "rustc" in beside:
            given = (spec.cflags, *(each.cflags for each in spec.selected))
            flags += tuple(map(toolchain.rust, given))
        booted = {}
        if asked.boot is not None:
            device = DEVICES.get(asked.boot.device)
            check = " ".join(selfcheck())
            booted = {**device.identity(asked.arch), "self-check": check}
        guest = arch.get(asked.arch).guest
        loader = module_archive.identity(guest) if with_modules and guest is not None else {}
        rewriter = {"rewriter": toolchain.banner("rewriter")} if rewritten else {}
        held = outside.digest(outside.named_by(merged))
        return {
            **toolchain.identity(arch.get(asked.arch)),
            **rewriter,
            **booted,
            **loader,
            **({} if held is None else {_OUTSIDE: held}),
            **({} if (below := merged.base_by_name) is None else {"base": below}),
            **beside,
            **_linker(spec.arch),
            **ALGORITHMS.identity(*algorithms_of(asked)),
            "overlays": kbuild.overlay_digest(spec.overlays),
            "config": kconfig.digest([path for path in spec.fragments if path.is_file()]),
            "flags": sha256(repr(flags).encode()).hexdigest(),
        }

    def run(self, context: StepContext) -> None:
        asked = KernelBuild[Path].of(context.step, context.inputs)
        build = _Build(context, asked, ingredients_of(asked, context))
        made = asked.instrumented
        selection = None
        if made is not None and made.scouted is not None:
            selection = Selection.find(made.scouted)
            if selection is not None and made.image_bytes is not None:
                build, selection = build.within(selection, made.image_bytes)
            build.keep_list()
        build.make()
        build.check_outside()
        build.note_missing_modules()
        if asked.installed:
            build.keep_installed()
        build.note_release()
        build.note_dropped()
        if selection is not None:
            safety = Safety.find(context.output)
            selection = selection.built(
                BuildDescription.read(context.output).size_bytes.image,
                () if safety is None else safety.opt_out.files,
            )
            selection.write(context.output)
            context.note(str(selection))
        build.keep_objects()


@dataclass(frozen=True)
class _Build:
    """Builds one kernel, repeatedly if necessary."""

    context: StepContext
    asked: KernelBuild[Path]
    ingredients: Ingredients[Path]

    @property
    def tools(self) -> Tools:
        return Tools(self.ingredients.use.toolchain, self.context.run)

    def make(self) -> None:
        """Build what is asked for, and check it if that is asked."""
        asked = self.asked
        if asked.boot is None:
            if warned := self.once(self.ingredients.spec()):
                self.context.note(objtool.summary(warned))
            self.note_unused_exclusions()
            return
        trials = KernelTrials(self.context, asked.arch, asked.boot, self.ingredients, self.once)
        if asked.instrumented is not None and not (
            ALGORITHMS.get(asked.instrumented.algorithm).records_branches
        ):
            trials.instrumented()
        else:
            trials.profiled()
        self.note_unused_exclusions()
        self.note_rewritten()
        if asked.uses and not self.ingredients.use.same_source:
            self.note_drift()

    def within(self, selection: Selection, limit: int) -> tuple[_Build, Selection]:
        """The build of which as much is instrumented as an image has room for, and what that is.

        Args:
            selection: what may be instrumented.
            limit: bytes of the image.
        """

        def of(chosen: Selection) -> _Build:
            listed = self.context.work / "selected"
            listed.mkdir(exist_ok=True)
            chosen.write_names(listed / EXECUTED_OBJECTS)
            assert self.asked.instrumented is not None
            made = self.asked.instrumented.model_copy(update={"scouted": listed})
            asked = self.asked.model_copy(update={"instrumented": made})
            return replace(self, asked=asked, ingredients=replace(self.ingredients, asked=asked))

        def image_of(chosen: Selection) -> int:
            build = of(chosen)
            build.once(build.ingredients.spec())
            size = BuildDescription.read(self.context.output).size_bytes.image
            self.context.note(f"an image of {size} bytes with {len(chosen.objects)} files counted")
            return size

        found = fitting(selection, limit, image_of)
        return of(found), found

    def check_outside(self) -> None:
        """Check that what the kernel holds from outside the tree is what the fingerprint says.

        Raises:
            WorkError: it has changed.
        """
        named = outside.named_by(_merged(self.ingredients.spec().fragments))
        if outside.digest(named) != self.context.tools.get(_OUTSIDE):
            raise WorkError(
                "a file that the config names has changed since the run began: one of "
                + listed([str(each) for each in sorted(named)], 4),
                "run again",
            )
        config = (self.context.output / "config").read_text(encoding="utf-8")
        unknown = sorted(each for each in outside.named_in(config) - named if each.exists())
        if unknown:
            self.context.note(
                f"the tree's own configuration names {listed([str(each) for each in unknown], 4)}, "
                "whose changes are not noticed: name it in a config of yours"
            )

    def keep_list(self) -> None:
        """Keep the list of what is instrumented: of the others, the profile will know nothing."""
        made = self.asked.instrumented
        assert made is not None and made.scouted is not None
        listed = made.scouted / EXECUTED_OBJECTS
        if listed.exists():
            shutil.copyfile(listed, self.context.output / EXECUTED_OBJECTS)

    def keep_installed(self) -> None:
        """Keep what belongs to the kernel where it is installed."""
        context = self.context
        why = installed.keep(self.ingredients.spec(), self.tools, self._paths, context.cores)
        if why is not None:
            context.note(f"no headers for other modules: {why}")

    def note_missing_modules(self) -> None:
        """Say which modules the configuration wants loaded and the kernel does not have."""
        chosen = self._chosen
        if chosen and (missing := unbuilt(self.context.output, chosen)):
            self.context.note(
                f"no guest loads {listed(missing, 4)}, which `# load:` names: this kernel has it "
                "neither as a module nor built in"
            )

    def keep_objects(self) -> None:
        """Keep the objects, with which another build may begin."""
        kbuild.keep(self.ingredients.spec(), self.tools.toolchain, self._paths)

    @property
    def _chosen(self) -> frozenset[str] | None:
        """The modules that guests load; None for all."""
        own = self.ingredients.own_fragments
        return kconfig.loaded(config_files(self.asked, own))

    @property
    def _paths(self) -> BuildPaths:
        context = self.context
        return BuildPaths(
            tree=self.asked.source,
            work=context.work,
            output=context.output,
            log=context.log,
            cache=context.cache,
        )

    def once(self, spec: BuildSpec) -> frozenset[objtool.Warned]:
        context = self.context
        warned = kbuild.build(
            spec,
            self.tools,
            self._paths,
            context.cores,
            lambda done, total, name: context.progress(done, total, "files", name),
        )
        if spec.arch.guest is not None:
            objcopy = self.tools.toolchain.tool("objcopy", spec.arch)
            module_archive.write_archive(
                context.output, spec.arch.guest, objcopy, context.work, context.run, self._chosen
            )
        return warned

    def note_release(self) -> None:
        """Show the release where another build of the tree may add its commit."""
        config = (self.context.output / "config").read_text(encoding="utf-8")
        if "CONFIG_LOCALVERSION_AUTO=y" in config.splitlines():
            release = release_of(self.context.output / "vmlinux")
            self.context.note(
                f"the release is {release}: CONFIG_LOCALVERSION_AUTO finds no git history in the "
                "copy of the tree; put the whole suffix into CONFIG_LOCALVERSION"
            )

    def note_dropped(self) -> None:
        """Show which options of the user's did not take effect."""
        path = self.context.output / DROPPED
        if path.exists():
            first, *others = path.read_text(encoding="utf-8").splitlines()
            more = f" and {len(others)} more, listed in {DROPPED} beside it" if others else ""
            self.context.note(f"did not take effect: {first}{more}")

    def note_unused_exclusions(self) -> None:
        """Show which of the program's exclusions this configuration does not compile."""
        if not self.asked.exclude:
            return
        compiled = functions_in(self.context.output)
        if unused := exclusions.unused(self.ingredients.excluded(), compiled):
            files = listed([name.removesuffix("%") for name in unused], 4)
            self.context.note(f"excluded, but not compiled in this configuration: {files}")

    def note_rewritten(self) -> None:
        """Show how much of the finished kernel was rewritten."""
        made = BuildDescription.find(self.context.output)
        if made is not None and (done := made.rewritten) is not None:
            self.context.note(
                f"BOLT laid out {done.functions} functions; {done.alone} others that ran must stay"
            )

    def note_drift(self) -> None:
        """Write and show how much of the profile of another kernel matches this one."""
        profile = self.ingredients.profile
        assert profile is not None
        for name in self.asked.uses:
            drift = ALGORITHMS.get(name).drift(
                profile, self.context.output, self.context.log, self.tools
            )
            if drift is not None:
                drift.write(self.context.output)
                self.context.note(
                    f"{drift.matched_percent:.1f} % of the profile's samples still match"
                )


def _merged(files: Iterable[Path]) -> kconfig.Fragments:
    """What those of the files that exist say together."""
    return kconfig.merge([path for path in files if path.is_file()])


def _linker(built_for: arch.Arch) -> dict[str, str]:
    """What links the kernel, where that is not the toolchain's own linker."""
    if not built_for.compiler_links:
        return {}
    return {"ld": identified(banner_of("ld", "apt-get install binutils"), "ld")}


def _check_same_build(asked: KernelBuild[Input], plan: Plan) -> None:
    """Refuse to build another kernel than the one whose profile fits no other.

    Raises:
        InputError: it differs in what the plan says of both.
    """
    if not asked.uses or flags_only(asked) or (profiled := _profiled(asked, plan)) is None:
        return
    top = asked.uses[-1]
    if not ALGORITHMS.get(top).same_build:
        return
    differ = [word for word, of in _OF_BUILD.items() if of(profiled) != of(asked)]
    if differ:
        raise InputError(
            f"the profile of {top} was recorded on a kernel with another {' and '.join(differ)}",
            "it fits only the exact build that was profiled: build that, or profile this one",
        )


def _profiled(asked: KernelBuild[Input], plan: Plan) -> KernelBuild[Input] | None:
    """The build whose profile a build uses, if the plan makes both."""
    if not isinstance(asked.profile, StepInput):
        return None
    made = plan.step(asked.profile.step)
    if made.kind != ProfileConvert.kind:
        return None
    kernel = ProfileConvert[Input].of(made, made.inputs).kernel
    if not isinstance(kernel, StepInput):
        return None
    step = plan.step(kernel.step)
    return KernelBuild[Input].of(step, step.inputs) if step.kind == KernelBuild.kind else None


BODY = KernelBuildBody()
