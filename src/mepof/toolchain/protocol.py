"""What a toolchain is: a compiler with its linker and the tools around them.

A kernel build, an algorithm or a step asks for a program by its role and for flags by what they
mean, so it works with every toolchain that has them. What only some toolchains can do is a
*capability*; an algorithm states those that it requires.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mepof.arch import Arch
from mepof.process import Completed
from mepof.registry import Registry

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
