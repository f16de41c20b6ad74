"""What a kernel build is made of: configuration, flags, overlays and the profile that it uses."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Generic

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS, EXECUTED_OBJECTS, BuildAddition, Round, Use
from mepof.arch import Arch
from mepof.errors import InputError, listed
from mepof.kernel import exclusions, kconfig, link_order
from mepof.kernel.build_spec import BuildSpec, FileFlags
from mepof.kernel.description import Origin
from mepof.kernel.options import Option, options
from mepof.kernel.safeguard import OptOut
from mepof.plan.body import StepContext
from mepof.plan.typed import In
from mepof.profile.artifact import ProfileDescription, profile_directory
from mepof.spec.kernel_build import KernelBuild
from mepof.toolchain.named import check_requirements, select
from mepof.toolchain.protocol import Tools

# Laid over trees that an algorithm instruments or optimises, where they have what it edits.
_ALGORITHM_OVERLAYS = ("migration-apart", "rcu-apart")


@dataclass(frozen=True)
class Ingredients(Generic[In]):
    """The ingredients of a build.

    Attributes:
        own_fragments: the user's config files, in order.
        profile: directory of all profiles that the build uses.
        modules: whether the configuration can have modules.
        same_as: the build that it must equal, if any.
    """

    asked: KernelBuild[In]
    own_fragments: tuple[Path, ...]
    profile: Path | None
    use: Use
    modules: bool = False
    same_as: Origin | None = None

    def addition(self) -> BuildAddition:
        """What profile use and instrumentation add to the build."""
        check_requirements(self.asked.toolchain, requirements(self.asked))
        added = BuildAddition()
        for name in self.asked.uses:
            if self.profile is None:
                raise InputError("the build uses a profile, but none is given")
            used = ALGORITHMS.get(name).use(self.profile, self.use)
            added += used.without_profiles() if flags_only(self.asked) else used
        if (made := self.asked.instrumented) is not None:
            earlier = self.profile if made.round > 1 else None
            listed = None
            if self.profile is not None and not self.use.cold_small:
                listed = self.profile / EXECUTED_OBJECTS
            counted = ALGORITHMS.get(made.algorithm).instrument(
                self.use.toolchain, Round(made.round, earlier, listed)
            )
            if made.scouted is not None:
                # The others keep the plain kernel's flags, and so its objects.
                scouted = made.scouted if isinstance(made.scouted, Path) else Path("scouted")
                only = FileFlags(scouted / EXECUTED_OBJECTS, counted.cflags)
                counted = replace(counted, cflags=(), selected=(only, *counted.selected))
            added += counted
        return added

    def excluded(self) -> tuple[str, ...]:
        """The program's exclusions: patterns of make once the tree exists."""
        tree = self.asked.source
        given = self.asked.exclude
        return exclusions.objects(tree, given) if isinstance(tree, Path) else given

    def spec(self) -> BuildSpec:
        addition = self.addition()
        excluded = self.excluded()
        chosen = [options()[name] for name in self.asked.options]
        built_for = arch.get(self.asked.arch)
        of_algorithms = (*_ALGORITHM_OVERLAYS, *built_for.algorithm_overlays)
        return BuildSpec(
            arch=built_for,
            fragments=tuple(config_files(self.asked, self.own_fragments)),
            config_lines=(
                *addition.config_lines,
                *(line for option in chosen for line in option.config),
            ),
            cflags=(*(flag for option in chosen for flag in option.cflags), *addition.cflags),
            ldflags=(
                *(flag for option in chosen for flag in option.ldflags),
                *addition.ldflags,
                *self._layout(built_for),
            ),
            link_order=self._link_order(built_for),
            variables=addition.variables,
            overlays=(
                *built_for.overlays,
                *(of_algorithms if algorithms_of(self.asked) else ()),
                # The user's own files cannot have an overlay's options.
                *kconfig.overlays(config_files(self.asked, ())),
                *(overlay for option in chosen for overlay in option.overlays),
                *addition.overlays,
                *(addition.module_overlays if self.modules else ()),
            ),
            selected=(
                *(each for option in chosen for each in option.files),
                *(each.except_for(excluded) for each in addition.selected),
                *self._of_profiled(chosen),
                *([FileFlags(excluded, addition.opt_out)] if excluded and addition.opt_out else ()),
            ),
            profiles=addition.profiles,
            same_as=self.same_as,
            note_dropped=self.asked.note_dropped,
            share=self.asked.share,
            suffix=self.asked.suffix,
            rewriting=addition.rewriting,
        )

    def without(self, opt_out: OptOut, work: Path, tools: Tools) -> BuildSpec:
        """The build with files and functions opted out of the profile.

        Args:
            work: directory for profiles without these functions.
        """
        spec, profile = self.spec(), self.profile
        assert profile is not None
        files = list(opt_out.files)
        profiles = dict(spec.profiles)
        spared: list[FileFlags] = []
        for file, functions in opt_out.functions.items():
            for number, name in enumerate(self.asked.uses):
                less = work / f"spared-{sha256(file.encode()).hexdigest()[:8]}-{number}"
                added = ALGORITHMS.get(name).spare(profile, functions, less, tools)
                if added is None:
                    files.append(file)
                    continue
                spared.append(FileFlags((file,), added.cflags, layout=True))
                profiles |= added.profiles
        selected = [each.except_for(tuple(files)) for each in spec.selected]
        if flags := self.addition().opt_out:
            selected.append(FileFlags(tuple(files), flags, layout=True))
        selected += spared
        rewritten = spec.rewriting
        if rewritten is not None:
            names = (name for functions in opt_out.functions.values() for name in functions)
            rewritten = replace(rewritten, files=opt_out.files, functions=frozenset(names))
        return replace(spec, selected=tuple(selected), profiles=profiles, rewriting=rewritten)

    def spares_functions(self, work: Path, tools: Tools) -> bool:
        """Whether single functions can be left out of every profile that the build uses.

        Args:
            work: directory for a copy of a profile.
        """
        assert self.profile is not None
        return all(
            ALGORITHMS.get(name).spare(self.profile, (), work / "spared", tools) is not None
            for name in self.asked.uses
        )

    def are_counts(self, profile: str) -> bool:
        """Whether one of the build's profiles, also one without some functions, has counts."""
        used = [ALGORITHMS.get(name) for name in self.asked.uses]
        owner = next((each for each in used if profile in each.profile_names), None)
        if owner is None:
            owner = used[int(profile.rpartition("-")[2])]
        return not owner.records_branches

    def _of_profiled(self, chosen: Sequence[Option]) -> Iterator[FileFlags]:
        """The flags of options for the files that the profile is about."""
        flags = tuple(flag for option in chosen for flag in option.profiled_cflags)
        if flags and self.profile is not None:
            yield FileFlags(self.profile / EXECUTED_OBJECTS, flags)

    def _layout(self, built_for: Arch) -> tuple[str, ...]:
        """The flag that makes the linker shuffle the code within each output section."""
        seed = self.asked.layout_seed
        if seed is None or built_for.compiler_links:
            return ()
        return self.use.toolchain.flags("shuffle-sections", pattern=".text*", seed=seed)

    def _link_order(self, built_for: Arch) -> str:
        """The linker script that shuffles the code where that flag is unknown."""
        seed = self.asked.layout_seed
        return link_order.script(seed) if seed is not None and built_for.compiler_links else ""


def algorithms_of(asked: KernelBuild[In]) -> tuple[str, ...]:
    """The algorithms that a build uses profiles of or is profiled by."""
    made = asked.instrumented
    return (*asked.uses, *((made.algorithm,) if made is not None else ()))


def requirements(asked: KernelBuild[In]) -> Mapping[str, frozenset[str]]:
    """The capabilities that algorithms, options and another order of the code require of the
    toolchain, by name."""
    relinked = asked.layout_seed is not None and not arch.get(asked.arch).compiler_links
    return {
        **({"set relinked": frozenset({"section-shuffle"})} if relinked else {}),
        **{name: ALGORITHMS.get(name).requires for name in algorithms_of(asked)},
        **{name: options()[name].requires for name in asked.options},
    }


def cold_small(asked: KernelBuild[In]) -> bool:
    return any(options()[name].cold_small for name in asked.options)


def flags_only(asked: KernelBuild[In]) -> bool:
    return any(options()[name].flags_only for name in asked.options)


def ingredients_of(asked: KernelBuild[Path], context: StepContext) -> Ingredients[Path]:
    """The ingredients of a build whose inputs exist.

    Raises:
        InputError: the profile does not have what the algorithms need.
    """
    toolchain = select(asked.toolchain)
    own = tuple(part for part in asked.config if isinstance(part, Path))
    profile, use, origin = None, Use(toolchain, None), None
    if asked.profile is not None:
        made = asked.instrumented
        names = (*asked.uses, *((made.algorithm,) if made is not None and made.round > 1 else ()))
        files = [file for name in names for file in ALGORITHMS.get(name).profile_names]
        profile = profile_directory(asked.profile, files, context.work)
        known = ProfileDescription.find(profile)
        use = replace(use, same_source=False)
        if known is not None and known.build is not None:
            origin = known.build
            same = origin.source == asked.source.name and not asked.other_kernel
            use = Use(toolchain, same, known.quality.exact)
        if cold_small(asked):
            use = replace(use, cold_small=True)
        else:
            if known is not None and (gone := _gone(known, asked.source)):
                context.note(
                    "files in which something ran are not in this tree, and what has moved from "
                    f"them is built without the profile: {listed(gone, 4)}"
                )
            profile = _without_unexecuted(
                profile, known, names, context.work, Tools(toolchain, context.run)
            )
    same_as = None
    if any(ALGORITHMS.get(name).same_build for name in asked.uses):
        if origin is None:
            raise InputError(
                f"the build that the {'+'.join(asked.uses)} profile belongs to is unknown",
                "it fits only that build: use it in the program that makes it",
            )
        same_as = origin
    return Ingredients(asked, own, profile, use, may_have_modules(asked, own), same_as)


def _gone(known: ProfileDescription, tree: Path) -> list[str]:
    """The files in which something ran, by a profile, that a tree of another source lacks."""
    if known.build is None or known.build.source == tree.name:
        return []  # what it lacks, overlays or the build add
    sources = (Path(name).with_suffix(".c") for name in known.executed_objects or ())
    # The list has objects of the kernel's own tools where these have a function of the same name.
    kernel = (each for each in sources if each.parts[0] != "tools")
    return [str(each) for each in kernel if not (tree / each).exists()]


def config_files(asked: KernelBuild[In], own: Sequence[Path]) -> Iterator[Path]:
    """The files of the configuration, in order.

    Args:
        own: the user's, in order; none to leave them out.
    """
    files = iter(own)
    for part in asked.config:
        if isinstance(part, str):
            yield from kconfig.paths(part, asked.arch)
        elif (file := next(files, None)) is not None:
            yield file


def may_have_modules(asked: KernelBuild[In], own: Sequence[Path]) -> bool:
    """Whether the configuration can have modules.

    Args:
        own: the user's config files, in order.
    """
    return kconfig.may_have_modules([*config_files(asked, own)])


def _without_unexecuted(
    profile: Path,
    known: ProfileDescription | None,
    algorithms: Sequence[str],
    work: Path,
    tools: Tools,
) -> Path:
    """A copy of a profile without the functions that never ran, and a list of the objects in which
    something did, if they are known."""
    copy = work / "profile-executed"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    # A directory of the user's may have anything else.
    for name in dict.fromkeys(algorithms):
        algorithm = ALGORITHMS.get(name)
        for file in algorithm.profile_names:
            shutil.copyfile(profile / file, copy / file)
        algorithm.drop_unexecuted(copy, tools)
    if known is not None and known.executed_objects is not None:
        (copy / EXECUTED_OBJECTS).write_text("\n".join(known.executed_objects) + "\n")
    return copy
