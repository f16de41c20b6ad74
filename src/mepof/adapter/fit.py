"""Whether a tree can be built, and with which algorithms, before anything is compiled.

Overlays are applied to the tree in memory. Whether an option's dependencies are met is not asked
here, but by :mod:`mepof.adapter.configured` and by the build.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import RootModel

from mepof.algorithm.protocol import ALGORITHMS, BuildAddition, Round, Use
from mepof.arch import Arch
from mepof.described import Described, read_described
from mepof.errors import EnvironmentLack, InputError, listed
from mepof.g4.names import is_path
from mepof.kernel import base, companions, kconfig, landing_pads, outside, overlay, rewriting
from mepof.kernel.options import options
from mepof.kernel.source import KernelVersion, check_kernel, version_of
from mepof.process import run
from mepof.source.directory import links_out, taken
from mepof.source.unfinished import unfinished
from mepof.toolchain.named import families_with, oldest_with
from mepof.toolchain.protocol import TOOLCHAINS, Toolchain

# Of what machines need, on wherever no file turns it off.
_ON_BY_DEFAULT = frozenset({"ACPI"})
_SCRIPT = "scripts/min-tool-version.sh"
_SCRIPT_SECONDS = 10.0


class _Minimum(Described):
    tool: str
    header: str
    macro: str


class _Minima(RootModel[dict[str, _Minimum]]):
    pass


@dataclass(frozen=True)
class Reason:
    """Why something cannot be built, and where to look or what to do, if that is known."""

    message: str
    nearest: str | None = None


@dataclass(frozen=True)
class AlgorithmFit:
    """Whether a tree can be built with an algorithm.

    Attributes:
        reasons: why not.
        modules: why not where the configuration has modules, beyond these.
    """

    algorithm: str
    reasons: tuple[Reason, ...]
    modules: tuple[Reason, ...]


@dataclass(frozen=True)
class Fit:
    """What can be built of a tree.

    Attributes:
        min_compiler: the oldest compiler that the kernel takes; None where it does not say.
        reasons: why nothing can be built, in any configuration.
        config: what the configuration needs and the kernel does not have: what it is laid over, or
            options. Without them, the build stops.
        options: why a recompilation option cannot be used, by its name; those of other compilers
            are left out.
        notes: what keeps nothing from being built, but may not be what is wanted.
    """

    version: KernelVersion
    toolchain: str
    min_compiler: str | None
    reasons: tuple[Reason, ...]
    config: tuple[Reason, ...]
    algorithms: tuple[AlgorithmFit, ...]
    options: dict[str, tuple[Reason, ...]]
    notes: tuple[Reason, ...]

    def builds(self, algorithm: AlgorithmFit) -> bool:
        """Whether the tree can be built with an algorithm, in a configuration without modules."""
        return not (self.reasons or self.config or algorithm.reasons)


def check_fit(
    tree: Path,
    arch: Arch,
    toolchain: Toolchain,
    config: Sequence[str],
    algorithms: Collection[str],
    in_place: bool = False,
    note_dropped: bool = False,
) -> Fit:
    """What can be built of a tree.

    Args:
        config: names of configurations, and paths, which contain ``/``.
        algorithms: to look at.
        in_place: it is a directory of the user's, of which a build copies what its links lead to.
        note_dropped: options of the user's files that the kernel does not have are a note.

    Raises:
        InputError: it is not a kernel source tree, or a configuration is unknown or unreadable.
        MepofError: the toolchain is incomplete.
    """
    check_kernel(tree, tree)
    laid = overlays_below(config, arch)
    symbols = dict(kconfig.symbols(tree))
    for name in laid:
        symbols |= kconfig.symbols(overlay.load(name).directory)
    minimum = _min_compiler(tree, arch, toolchain)
    files = fragment_files(config, arch)
    kconfig.check_arch(files, arch)
    fragments = kconfig.merge(files)
    broken, links = _links(tree, in_place)
    theirs: list[kconfig.Setting] = []
    required: list[kconfig.Setting] = []
    for each in fragments.settings:
        (theirs if note_dropped and not each.is_ours() else required).append(each)
    return Fit(
        version=version_of(tree),
        toolchain=f"{toolchain.name} {_version(toolchain, arch)}",
        min_compiler=minimum,
        reasons=(*broken, *_of_the_tree(tree, arch, toolchain, minimum)),
        config=(
            *_baseless(tree, arch, fragments),
            *_misfits(tree, laid, toolchain),
            *_unknown(required, symbols),
            *_unfit(required, symbols),
            *_unaccompanied(fragments),
            *_without_files(fragments, tree),
        ),
        algorithms=tuple(
            _algorithm(name, tree, arch, toolchain, fragments, symbols) for name in algorithms
        ),
        options={
            name: reasons
            for name, option in options().items()
            if option.requires <= TOOLCHAINS.get(toolchain.family).capabilities.keys()
            and (
                reasons := (
                    *_lacks(option.requires, toolchain),
                    *_unknown(kconfig.merge([], option.config).settings, symbols),
                    *_misfits(tree, option.overlays, toolchain),
                )
            )
        },
        notes=(
            *links,
            *(Reason(*each) for each in unfinished(tree)),
            *_unreachable(tree, arch, fragments),
            *_lacking_below(tree, arch, fragments),
            *_noted(theirs, symbols),
            *_unfit(theirs, symbols),
        ),
    )


def fragment_files(config: Iterable[str], arch: Arch) -> list[Path]:
    """The files of a configuration, in order.

    Args:
        config: names of configurations, and paths, which contain ``/``.

    Raises:
        InputError: there is none of a name.
    """
    files: list[Path] = []
    for part in config:
        files += (Path(part),) if is_path(part) else kconfig.paths(part, arch.name)
    return files


def overlays_below(config: Iterable[str], arch: Arch) -> tuple[str, ...]:
    """The overlays of every kernel of a configuration, also of the plain one."""
    ours = [part for part in config if not is_path(part)]
    return (*arch.overlays, *kconfig.overlays(fragment_files(ours, arch)))


def _unreachable(tree: Path, arch: Arch, fragments: kconfig.Fragments) -> Iterator[Reason]:
    """What a kernel lacks to be reached in the emulator, as far as its configuration says."""
    values = base.values(tree, arch, fragments)
    if arch.machine is None or values is None:
        return
    unless_off = frozenset[str]() if fragments.base == "allnoconfig" else _ON_BY_DEFAULT
    built = {name for name, value in values.items() if value in ("y", "m")}
    if lacking := arch.machine.lacking(built | (unless_off - values.keys())):
        yield Reason(
            "a kernel of this configuration cannot be reached in QEMU: it lacks "
            + ", ".join(f"CONFIG_{name}=y" for name in lacking),
            "add these lines; for another device than `qemu`, and no virtual phone, leave them out",
        )


def _lacking_below(tree: Path, arch: Arch, fragments: kconfig.Fragments) -> Iterator[Reason]:
    """What the tree's files below a configuration need and is not there: Kconfig may leave an
    option out for it, so that a build goes on without."""
    own = fragments.values()
    values = (base.values(tree, arch, fragments) or {}).items()
    lines = [f"CONFIG_{name}={value}" for name, value in values if name not in own]
    for message, remedy in (
        *companions.lacking({*lines}),
        *outside.lacking("\n".join(lines), [tree]),
    ):
        yield Reason(f"{message} ({fragments.base})", remedy)


def _links(tree: Path, in_place: bool) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """What is wrong with links that lead out of a tree: for a build, and for what is built."""
    try:
        found = taken(tree)
    except InputError as error:
        wrong = (Reason(error.message, error.remedy),)
        return (wrong, ()) if in_place else ((), wrong)
    remedy = "name a directory with the tree and what the link leads to: a build copies both"
    if in_place:
        remedy = "restore what the link leads to, or remove it"
    return (), tuple(
        Reason(
            f"the link {name} leads out of the tree to {to}, which "
            f"{'is not part of the source' if there else 'does not exist'}",
            remedy,
        )
        for name, to, there in links_out(found)
        if not (in_place and there)
    )


def _of_the_tree(
    tree: Path, arch: Arch, toolchain: Toolchain, minimum: str | None
) -> Iterator[Reason]:
    if not (tree / "arch" / arch.source).is_dir():
        near = sorted(path.name for path in (tree / "arch").glob("*/") if path.is_dir())
        known = f"it has {', '.join(near)}" if near else None
        yield Reason(f"the kernel has no architecture arch/{arch.source}", known)
    if not arch.built_by(toolchain.family):
        able = " or ".join(arch.toolchains)
        yield Reason(f"{toolchain.name} does not build kernels for {arch.name}", f"choose {able}")
    try:
        version = toolchain.version_for(arch)
    except EnvironmentLack as error:
        yield Reason(error.message, error.remedy)
    else:
        if minimum is not None and _numbers(version) < _numbers(minimum):
            yield Reason(
                f"the kernel needs {toolchain.family} {minimum} or later, and "
                f"{toolchain.name} is {version}",
                "choose another toolchain",
            )
    always = (overlay.load("flags"),)
    for misfit in overlay.apply(tree, always, None)[1]:
        yield Reason(misfit.message, misfit.nearest)


def _baseless(tree: Path, arch: Arch, fragments: kconfig.Fragments) -> Iterator[Reason]:
    if (tree / "arch" / arch.source).is_dir():
        try:
            base.check(tree, arch, fragments)
        except InputError as error:
            yield Reason(error.message, error.remedy)


def _noted(settings: Iterable[kconfig.Setting], symbols: kconfig.Kinds) -> Iterator[Reason]:
    """How many options need not be there, and are not."""
    if missing := kconfig.unknown(settings, symbols):
        names = listed([f"CONFIG_{each.symbol}" for each in missing], 4)
        yield Reason(f"the kernel does not have {len(missing)} of the options: {names}")


def _unfit(settings: Iterable[kconfig.Setting], symbols: kconfig.Kinds) -> Iterator[Reason]:
    for setting, takes in kconfig.unfit(settings, symbols):
        yield Reason(
            f"CONFIG_{setting.symbol} takes {takes}, not {setting.value} ({setting.origin})"
        )


def _unaccompanied(fragments: kconfig.Fragments) -> Iterator[Reason]:
    wanted = {setting.lines().rstrip() for setting in fragments.settings}
    for message, remedy in companions.lacking(wanted):
        yield Reason(message, remedy)


def _without_files(fragments: kconfig.Fragments, tree: Path) -> Iterator[Reason]:
    lines = "".join(setting.lines() for setting in fragments.settings)
    for message, remedy in outside.lacking(lines, [tree]):
        yield Reason(message, remedy)


def _algorithm(
    name: str,
    tree: Path,
    arch: Arch,
    toolchain: Toolchain,
    fragments: kconfig.Fragments,
    symbols: kconfig.Kinds,
) -> AlgorithmFit:
    algorithm = ALGORITHMS.get(name)
    lacks = tuple(_lacks(algorithm.requires, toolchain))
    if lacks:
        return AlgorithmFit(name, lacks, ())
    # The profile need not be there: what using it adds is known before.
    added = algorithm.use(Path("profile"), Use(toolchain, None))
    for number in range(1, algorithm.rounds + 1):
        added += algorithm.instrument(toolchain, Round(number))
    plain = _misfits(tree, added.overlays, toolchain)
    both = _misfits(tree, (*added.overlays, *added.module_overlays), toolchain)
    refused = _refused(algorithm.requires, tree, arch, fragments)
    reasons = (*refused, *plain, *_unknown(_settings(added), symbols))
    return AlgorithmFit(name, reasons, tuple(r for r in both if r not in plain))


def _refused(
    required: frozenset[str], tree: Path, arch: Arch, fragments: kconfig.Fragments
) -> Iterator[Reason]:
    """Why a kernel of this configuration is not for what needs these capabilities."""
    try:
        if "binary-layout" in required:
            rewriting.check_wanted(fragments, arch.name)
            rewriting.check_release(version_of(tree))
        if "basic-block-sections" in required:
            landing_pads.check_placed(fragments, arch.name)
    except InputError as error:
        yield Reason(error.message, error.remedy)


def _settings(added: BuildAddition) -> tuple[kconfig.Setting, ...]:
    return kconfig.merge([], added.config_lines).settings


def _lacks(required: frozenset[str], toolchain: Toolchain) -> Iterator[Reason]:
    if missing := sorted(required - toolchain.capabilities):
        if oldest := oldest_with(toolchain.family, toolchain.version, missing):
            yield Reason(
                f"it needs {toolchain.family} {oldest} or later, and {toolchain.name} is "
                f"{toolchain.version}"
            )
        else:
            able = families_with(required)
            yield Reason(
                f"it needs {' or '.join(able or missing)}, and the toolchain is {toolchain.name}",
                f"choose it: --toolchain {able[0]}" if able else None,
            )


def _misfits(tree: Path, names: Iterable[str], toolchain: Toolchain) -> tuple[Reason, ...]:
    laid = tuple(each for each in map(overlay.load, names) if each.is_for(tree))
    _, misfits = overlay.apply(tree, laid, toolchain.resource_directory())
    return tuple(Reason(misfit.message, misfit.nearest) for misfit in misfits)


def _unknown(settings: Iterable[kconfig.Setting], symbols: kconfig.Kinds) -> Iterator[Reason]:
    """The options that must be set and that the kernel has under none of their names; if they are
    very many, first that."""
    missing = kconfig.unknown(settings, symbols)
    if len(missing) > kconfig.MANY:
        remedy = "choose a configuration for this kernel"
        if kconfig.reducible(missing):
            remedy = kconfig.REDUCE
        yield Reason(f"the kernel does not have {len(missing)} of the options", remedy)
    for setting in missing:
        near = get_close_matches(setting.symbol, symbols, n=1, cutoff=0.8)
        yield Reason(
            f"the kernel has no CONFIG_{' or CONFIG_'.join(setting.names())} ({setting.origin})",
            f"the nearest is CONFIG_{near[0]}" if near else None,
        )


def _min_compiler(tree: Path, arch: Arch, toolchain: Toolchain) -> str | None:
    """The oldest version that the kernel takes of a toolchain's compiler."""
    minima = read_described(Path(__file__).with_name("minimum.toml"), _Minima, "minima").root
    known = minima.get(toolchain.family)
    if known is None:
        return None
    if (tree / _SCRIPT).is_file():
        done = run(
            ["sh", tree / _SCRIPT, known.tool],
            env={"ARCH": arch.make, "SRCARCH": arch.source},
            timeout=_SCRIPT_SECONDS,
            check=False,
        )
        found = re.fullmatch(r"\d+(\.\d+)*", done.output.strip())
        return found[0] if found and done.status == 0 else None
    header = tree / known.header
    if not header.is_file():
        return None
    text = header.read_text(encoding="utf-8", errors="replace")
    if (stated := re.search(rf"{known.macro} < (\d+)", text)) is None:
        return None
    whole = int(stated[1])
    return f"{whole // 10000}.{whole // 100 % 100}.{whole % 100}"


def _version(toolchain: Toolchain, arch: Arch) -> str:
    """That of the compiler that builds; where it is missing, of the one for this machine."""
    try:
        return toolchain.version_for(arch)
    except EnvironmentLack:
        return toolchain.version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
