"""What a toolchain is: a compiler with its linker and the tools around them.

A kernel build, an algorithm or a step asks for a program by its role and for flags by what they
mean, so it works with every toolchain that has them. What only some toolchains can do is a
*capability*; an algorithm states those that it requires.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mepof.arch import Arch
from mepof.errors import EnvironmentLack, InputError, MepofError
from mepof.process import Completed
from mepof.registry import Registry

#: The toolchain of a program that names none.
DEFAULT = "clang"

#: Runs a program like :func:`mepof.process.run`.
Run = Callable[..., Completed]

Role = Literal["compiler", "linker", "archiver", "nm", "objcopy", "profile-merger", "rewriter"]

#: What flags mean, and the values that they take.
Meaning = Literal[
    # Of every build: the directory that debug information calls the current one ({directory}).
    "debug-directory",
    # With `pruned-files`: take a preprocessed file with options of its preprocessing, and though
    # there are warnings.
    "compile-preprocessed",
    "function-sections",
    # Keep each function in one section.
    "whole-functions",
    # Count in the kernel itself, with {targets} values kept for each site of value profiling.
    "count",
    # Count once more in a build that uses counts, after its inlining.
    "count-in-context",
    # Do not count, despite one of these two.
    "drop-counting",
    # Use counts ({profile}), do so without the warnings that are no news, or with those that say
    # which counts do not fit, and do not use them.
    "use-counts",
    "quiet-counts",
    "tell-discarded-counts",
    "drop-counts",
    # Use counts of files that are named from the root of the tree, though the compiler sees them
    # {levels} directories below.
    "counts-from-root",
    # Compile functions without counts as without a profile.
    "keep-untrained",
    # Keep every instruction's own source line.
    "keep-lines",
    # Tell the blocks of one line apart.
    "discriminators",
    # Write a table of lines, unless the configuration does.
    "profiling-lines",
    # Put what rarely runs of a function into another section.
    "split-functions",
    # Inline into code that the kernel marks as not to be instrumented.
    "inline-unmarked",
    # Mark basic blocks by probes.
    "probes",
    # Use samples ({profile}), also of the linker with LTO, and do not use them.
    "use-samples",
    "use-lto-samples",
    "drop-samples",
    # Samples are complete; and what has none is cold.
    "exact-samples",
    "unsampled-cold",
    # Match samples with sources that have changed since.
    "rematch-samples",
    # Say where each basic block is, also of the linker with LTO.
    "map-blocks",
    "map-lto-blocks",
    # Lay out basic blocks as {profile} says, and as the compiler does by itself.
    "place-blocks",
    "drop-blocks",
    # Of the linker: lay out functions as {order} says, basic blocks of LTO as {profile} says, and
    # the sections that {pattern} names by a generator with {seed}.
    "order-functions",
    "place-lto-blocks",
    "shuffle-sections",
]

#: Kinds of profiles that a merger edits.
ProfileKind = Literal["counts", "samples"]


@dataclass(frozen=True)
class FunctionCount:
    """How many functions a profile knows, and how many of them ran."""

    known: int
    executed: int


class Toolchain(Protocol):
    """One version of a toolchain."""

    @property
    def name(self) -> str:
        """Its G4 name: ``clang-22``, or ``clang:/opt/clang-r563880``."""

    @property
    def family(self) -> str:
        """The name without a version: ``clang``."""

    @property
    def version(self) -> str:
        """The compiler's version, such as ``22.1.8``: of a directory with compilers for several
        machines, that of the first."""

    def version_for(self, arch: Arch | None) -> str:
        """The version of the compiler for an architecture.

        Args:
            arch: as of :meth:`tool`.

        Raises:
            EnvironmentLack: it is missing.
        """

    @property
    def capabilities(self) -> frozenset[str]:
        """What not every toolchain can do."""

    @property
    def overlays(self) -> tuple[str, ...]:
        """What kernels that count need beyond the overlay ``pgo``."""

    @property
    def split_overlays(self) -> tuple[str, ...]:
        """What kernels with split functions need beyond the overlays of their algorithm."""

    def tool(self, role: Role, arch: Arch | None = None) -> str:
        """The command name of the tool with a role.

        Args:
            arch: what it handles code of; None for this machine's own.

        Raises:
            InputError: the toolchain has no such tool.
        """

    def flags(self, meaning: Meaning, **values: object) -> tuple[str, ...]:
        """The flags with a meaning.

        Args:
            values: what the meaning asks for.

        Raises:
            InputError: the toolchain has no such flags.
        """

    def rust(self, flags: Sequence[str]) -> tuple[str, ...]:
        """What rustc has of the compiler's flags, by its own names. It gets no others.

        Args:
            flags: in the order of the compiler's command line, with make's conditions.
        """

    def identity(self, arch: Arch | None = None) -> dict[str, str]:
        """Version lines of the tools that decide what a build makes, with digests of those that are
        not the system's.

        Args:
            arch: what is built for; None where nothing is compiled.

        Raises:
            EnvironmentLack: one of them is missing.
        """

    def compiler_content(self, arch: Arch) -> str | None:
        """A digest of the compiler that depends on no path or time; None for the system's, whose
        packages give each version another time.

        Args:
            arch: what is built for.

        Raises:
            EnvironmentLack: it is missing.
        """

    def banner(self, role: Role, arch: Arch | None = None) -> str:
        """The line in which a tool reports its version.

        Args:
            arch: as of :meth:`tool`.

        Raises:
            EnvironmentLack: it is missing.
        """

    def packages(self) -> tuple[str, ...]:
        """Debian's packages of what compiles a kernel's modules; none for a toolchain in a
        directory."""

    def make_variables(self, arch: Arch) -> dict[str, str]:
        """The variables by which kbuild takes all tools from this toolchain."""

    def kconfig_environment(self, arch: Arch) -> dict[str, str]:
        """The variables that kbuild's top Makefile exports for Kconfig's macros."""

    def files(self, arch: Arch | None = None) -> tuple[NeededFile, ...]:
        """The files that it needs beside its programs.

        Args:
            arch: what kernels are built for; None for this machine's own.
        """

    def resource_directory(self) -> Path | None:
        """Where the compiler keeps its own headers; None where overlays cannot take any."""

    def merge_profiles(
        self, weighted: Sequence[tuple[Path, int]], output: Path, run: Run
    ) -> FunctionCount:
        """Write the weighted sum of raw or finished profiles of counts.

        Raises:
            WorkError: one of them is not readable.
        """

    def executed(self, profile: Path, run: Run) -> frozenset[str]:
        """The functions that ran, as a profile of counts names them: a static one as
        ``SOURCE;NAME``."""

    def drop_unexecuted(self, profile: Path, output: Path, run: Run) -> None:
        """Write a profile of counts without the functions that never ran.

        Args:
            output: may be ``profile``.
        """

    def relocate(self, profile: Path, output: Path, run: Run) -> tuple[str, ...] | None:
        """Write a profile of counts for builds with their objects anywhere.

        Returns:
            the flags with which these use it; None if the compiler takes only the profile as it
            is, in builds with their objects in a directory of the tree.
        """

    def drop_functions(
        self,
        kind: ProfileKind,
        functions: Collection[str],
        profile: Path,
        output: Path,
        run: Run,
    ) -> None:
        """Write a profile without some functions.

        Args:
            functions: names of symbols.
        """


@dataclass(frozen=True)
class Program:
    """A program that a toolchain needs.

    Attributes:
        min_version: of the program itself.
        package: Debian's; None where `make setup` chooses the version to install.
        optional: the toolchain works without it, except for its purpose.
        version: the words that make it report its version.
    """

    command: str
    purpose: str
    min_version: tuple[int, ...]
    package: str | None
    optional: bool = False
    version: tuple[str, ...] = ("--version",)


@dataclass(frozen=True)
class NeededFile:
    """A file that a toolchain needs.

    Attributes:
        capability: needs it to instrument kernels; None where an overlay takes it.
        path: where it should be; None if that is unknown.
        package: as of :class:`Program`.
    """

    name: str
    purpose: str
    capability: str | None
    path: Path | None
    package: str | None


class Family(Protocol):
    """The versions of a toolchain."""

    @property
    def capabilities(self) -> Mapping[str, int]:
        """What not every toolchain can do, and the oldest major version that can."""

    def capabilities_of(self, version: str) -> frozenset[str]:
        """What one of them can do of this; it need not be installed."""

    @property
    def exclusive(self) -> frozenset[str]:
        """Capabilities of which one build takes a single profile."""

    def versions(self) -> tuple[str, ...]:
        """The versions that programs can name, newest first."""

    def select(self, version: str | None) -> Toolchain:
        """The installed toolchain of a version, or the newest.

        Raises:
            InputError: it is not one of :meth:`versions`.
            EnvironmentLack: it is not installed.
        """

    def at(self, directory: Path) -> Toolchain:
        """The toolchain in a directory, or in its ``bin``.

        Raises:
            InputError: it is a file, or kbuild cannot use its path.
            EnvironmentLack: it is not complete there, or too old.
        """

    def programs(self) -> tuple[Program, ...]:
        """The programs that the newest version needs that is installed, if only in part."""

    def files(self) -> tuple[NeededFile, ...]:
        """The files that this version needs beside them."""


TOOLCHAINS: Registry[Family] = Registry("mepof.toolchain", "TOOLCHAIN", "toolchain", Family)


@dataclass(frozen=True)
class Tools:
    """A toolchain, and what runs its programs."""

    toolchain: Toolchain
    run: Run


def names() -> tuple[str, ...]:
    """The words for toolchains in programs: each family, and each of its versions."""
    return tuple(
        name
        for family, found in TOOLCHAINS.all().items()
        for name in (family, *(f"{family}-{version}" for version in found.versions()))
    )


def capabilities() -> dict[str, frozenset[str]]:
    """What each toolchain can do that not every one can, by its G4 names; without a version, what
    some version can."""
    return {name: _capabilities(*_parse(name)) for name in names()}


def builders(arch: Arch) -> tuple[str, ...]:
    """The G4 names of the toolchains that build kernels for an architecture."""
    return tuple(name for name in names() if arch.built_by(_parse(name)[0]))


def exclusive() -> dict[str, frozenset[str]]:
    """The capabilities of which one build takes a single profile, by the toolchains' G4 names."""
    return {name: TOOLCHAINS.get(_parse(name)[0]).exclusive for name in names()}


def select(name: str) -> Toolchain:
    """The toolchain of a G4 name: ``clang`` is the newest one here, ``clang-22`` that one, and
    ``clang:DIRECTORY`` the one there.

    Raises:
        InputError: the name is unknown.
        EnvironmentLack: it is not installed.
    """
    family, version = _parse(name)
    if "/" in family:
        known = " or ".join(f"{each}:{name}" for each in _suited(name))
        raise InputError(f"{name} does not say what kind of toolchain it is", f"write {known}")
    found, directory = TOOLCHAINS.get(family), name.partition(":")[2]
    return found.at(Path(directory).absolute()) if directory else found.select(version)


def check_requirements(toolchain: str, requirements: Mapping[str, Collection[str]]) -> None:
    """Refuse a toolchain that cannot do what is required. It need not be installed; then one
    without a version in its name may be any.

    Args:
        toolchain: its G4 name.
        requirements: capabilities, by the name of what requires them.

    Raises:
        InputError: it does not have one of them.
    """
    family, version = _parse(toolchain)
    has = _capabilities(family, version)
    if version is None and any(requirements.values()):
        with suppress(MepofError):
            chosen = select(toolchain)
            has, version = chosen.capabilities, chosen.version
    for name, required in requirements.items():
        if missing := sorted(set(required) - has):
            if oldest := oldest_with(family, version, missing):
                raise InputError(
                    f"{name} needs {family} {oldest} or later, not {version}",
                    f"set toolchain {family}-{oldest}, or a newer one",
                )
            raise InputError(
                f"{toolchain} cannot be used with {name}: it does not have {', '.join(missing)}",
                _suggestion(frozenset(required)),
            )


def oldest_with(family: str, version: str | None, missing: Collection[str]) -> int | None:
    """The oldest major version of a family that has what an older one lacks; None if it is not for
    its age that one lacks it.

    Args:
        version: that lacks it.
        missing: capabilities.
    """
    since = TOOLCHAINS.get(family).capabilities
    if version is None or not set(missing) <= since.keys():
        return None
    oldest = max(since[each] for each in missing)
    return oldest if int(version.partition(".")[0]) < oldest else None


def check_files(toolchain: Toolchain, arch: Arch, required: Collection[str]) -> None:
    """Refuse a toolchain without the files that instrumentation needs.

    Args:
        arch: what kernels are built for.
        required: the capabilities by which they are instrumented.

    Raises:
        EnvironmentLack: a file is missing.
    """
    missing = [
        file
        for file in toolchain.files(arch)
        if file.capability in required and not (file.path is not None and file.path.is_file())
    ]
    if missing:
        names = " and ".join(file.name for file in missing)
        packages = [file.package for file in missing if file.package is not None]
        raise EnvironmentLack(
            f"{toolchain.name} cannot instrument kernels for {arch.name} without {names}",
            f"apt-get install {' '.join(packages)}" if packages else "run `mepof doctor`",
        )


def installed_with(capability: str) -> Iterator[Toolchain]:
    """The installed toolchains of a family that has a capability, from the newest on.

    Raises:
        InputError: no toolchain has it.
        EnvironmentLack: none that has it is installed.
    """
    for family in (DEFAULT, *TOOLCHAINS.names()):
        found = TOOLCHAINS.get(family)
        if capability in found.capabilities:
            yield found.select(None)
            for version in found.versions():
                with suppress(EnvironmentLack):
                    yield found.select(version)
            return
    raise InputError(f"no toolchain has {capability}")


def _suited(directory: str) -> tuple[str, ...]:
    """The families that have a toolchain in a directory, or all if none has."""
    found = []
    for name, family in TOOLCHAINS.all().items():
        with suppress(MepofError):
            family.at(Path(directory).absolute())
            found.append(name)
    return tuple(found) or TOOLCHAINS.names()


def _suggestion(required: frozenset[str]) -> str | None:
    families = TOOLCHAINS.all().items()
    able = [name for name, family in families if required <= family.capabilities.keys()]
    return f"use {' or '.join(able)}" if able else None


def _capabilities(family: str, version: str | None) -> frozenset[str]:
    """Those of a version; without one, those that some version has."""
    found = TOOLCHAINS.get(family)
    return frozenset(found.capabilities) if version is None else found.capabilities_of(version)


def _parse(name: str) -> tuple[str, str | None]:
    """A G4 name as a family and a version."""
    name = name.partition(":")[0]
    families = TOOLCHAINS.names()
    family, dash, version = name.rpartition("-")
    if name not in families and dash and family in families:
        return family, version
    return name, None
