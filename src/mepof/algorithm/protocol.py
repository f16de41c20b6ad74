"""What an algorithm is: answers to five questions. Nothing else knows which algorithm runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from mepof.device.agent import Request
from mepof.kernel.build_spec import PROFILES, FileFlags, Rewriting
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.quality import Quality
from mepof.registry import Registry
from mepof.toolchain.protocol import Toolchain, Tools


@dataclass(frozen=True)
class BuildAddition:
    """What an algorithm adds to a kernel build.

    Attributes:
        overlays: names of overlays.
        module_overlays: names of further overlays, for configurations that can have modules.
        config_lines: Kconfig lines.
        cflags: compiler flags for the files that can take them.
        ldflags: linker flags.
        variables: for make's command line.
        selected: compiler flags for single files.
        profiles: files, by name; flags and variables call them ``PROFILES/NAME``.
        opt_out: compiler flags by which a single file is not instrumented or does not use the
            profile.
        rewriting: how the finished kernel is rewritten, if it is.
    """

    overlays: tuple[str, ...] = ()
    module_overlays: tuple[str, ...] = ()
    config_lines: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    selected: tuple[FileFlags, ...] = ()
    profiles: Mapping[str, Path] = field(default_factory=dict)
    opt_out: tuple[str, ...] = ()
    rewriting: Rewriting | None = None

    def __add__(self, other: BuildAddition) -> BuildAddition:
        return BuildAddition(
            overlays=tuple(dict.fromkeys((*self.overlays, *other.overlays))),
            module_overlays=tuple(dict.fromkeys((*self.module_overlays, *other.module_overlays))),
            config_lines=tuple(dict.fromkeys((*self.config_lines, *other.config_lines))),
            cflags=(*self.cflags, *other.cflags),
            ldflags=(*self.ldflags, *other.ldflags),
            variables={**self.variables, **other.variables},
            selected=(*self.selected, *other.selected),
            profiles={**self.profiles, **other.profiles},
            opt_out=(*self.opt_out, *other.opt_out),
            rewriting=other.rewriting or self.rewriting,
        )

    def without_profiles(self) -> BuildAddition:
        """The same without profiles and what names one of them: what else an algorithm adds."""

        def others(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(word for word in words if PROFILES not in word)

        return replace(
            self,
            cflags=others(self.cflags),
            ldflags=others(self.ldflags),
            variables={name: word for name, word in self.variables.items() if PROFILES not in word},
            selected=tuple(replace(each, cflags=others(each.cflags)) for each in self.selected),
            profiles={},
            rewriting=None,
        )


@dataclass(frozen=True)
class Round:
    """One of an algorithm's rounds.

    Attributes:
        number: from 1.
        profile: the directory with the profile of the round before; None in the first.
        executed: the file that lists the objects in which anything ran by the profile of the
            algorithms below; None where there are none.
    """

    number: int = 1
    profile: Path | None = None
    executed: Path | None = None


@dataclass(frozen=True)
class Conversion:
    """What a profile is made from.

    Attributes:
        raw: what was collected, or what a real machine recorded.
        build: directory of the build that ran: ``vmlinux`` and the other files of the artifact.
        output: the directory for the profile's files.
        round: the round in which it was collected.
    """

    raw: tuple[Path, ...]
    build: Path
    output: Path
    tools: Tools
    round: Round = Round()


@dataclass(frozen=True)
class Use:
    """A build that uses a profile.

    Attributes:
        same_source: the profile is known to be of the same source as the build, configured alike
            and for the same architecture; None while the build is only planned.
        exact: everything was counted, nothing sampled.
        cold_small: code that never ran is compiled for size; otherwise functions that never ran
            have no profile, and files in which nothing ran are compiled as without one.
    """

    toolchain: Toolchain
    same_source: bool | None
    exact: bool = False
    cold_small: bool = False


class Algorithm(Protocol):
    """How a profile is made and used."""

    #: 5. How many profile-and-rebuild rounds it takes, each on the profile of the one before.
    rounds: int
    #: The files of a finished profile.
    profile_names: tuple[str, ...]
    #: 2. Whether a device records branches while the kernel runs; otherwise the kernel counts
    #: by itself.
    records_branches: bool
    #: 2. After how many taken branches the device samples the branch stack, unless the program says
    #: otherwise; None has it record every branch.
    period: int | None
    #: 4. Whether a profile fits only the exact build that it was made from.
    same_build: bool
    #: Whether a build that uses a profile can be profiled in turn: by `set base` and `set rounds`.
    #: Otherwise only the kernel that `instrument` describes can.
    repeats: bool
    #: Whether what is left of an old profile can be added to a new one: by `set base`.
    renews: bool
    #: Whether a profile names the functions that ran, so that a report can compare with it what a
    #: case executes.
    names_functions: bool
    #: Capabilities of a toolchain without which it cannot be used.
    requires: frozenset[str]

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        """1. What to add to a build so that a run of it can be profiled in a round.

        The profile of the round before need not be there yet.
        """

    def reset(self) -> tuple[Request, ...]:
        """2a. The requests by which a booted kernel forgets what it has counted so far."""

    def collect(self, modules: bool) -> tuple[Request, ...]:
        """2b. The requests for the raw profile; the reply to each has data.

        Args:
            modules: whether the kernel has modules. A reply about them alone may be empty: all may
                be for hardware that is not there.
        """

    def convert(self, conversion: Conversion) -> Quality:
        """3. Write the profile.

        Raises:
            WorkError: the raw data is not readable.
        """

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        """Write the weighted sum of profiles into the directory ``output``."""

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        """Write the sum of a new profile and of what is left of an old one into the directory
        ``output``; each is a directory. Only where the kernel counts by itself may the new one be
        of a part of it (``decay.part``).

        Raises:
            InputError: one of them has no counts, or they cannot be added up.
        """

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        """Look at a profile that the user brings, before anything is built with it.

        Args:
            files: its files by their names of ``profile_names``.
            tools: None where the toolchain is not installed; then less is checked.

        Raises:
            InputError: it is not a profile of this algorithm, or not of this toolchain.
        """

    def use(self, profile: Path, build: Use) -> BuildAddition:
        """4. What to add to a build so that it uses the profile in a directory.

        The profile need not be there yet: a plan knows what is built before it is.
        """

    def executed(self, profile: Path, tools: Tools) -> frozenset[str] | None:
        """The functions that ran: a static one as ``SOURCE;NAME`` where the profile names its
        source. None where the profile does not decide how a file is compiled."""

    def drop_unexecuted(self, profile: Path, tools: Tools) -> None:
        """Remove the functions that never ran from the profile in a directory, where it would call
        them cold."""

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        """How much of a profile fits a kernel of another source; None where the algorithm
        cannot tell.

        Args:
            build: directory of the finished kernel.
            log: the output of its compilation.
            tools: by which it was compiled.
        """

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition | None:
        """Write the profile without some functions to ``output``.

        Args:
            functions: names of symbols.
            output: file to write.

        Returns:
            ``cflags`` by which a single file uses it instead of the whole profile, and
            ``profiles``. None if functions cannot be left out of it: the file goes without it.
        """


#: In the directory of a profile that a build uses: the objects that define a function which ran,
#: a line each. Missing where that is unknown.
EXECUTED_OBJECTS = "kernel.executed_objects"

#: That of an external profile whose suffix is not one of an algorithm.
DEFAULT_ALGORITHM = "pgo"

ALGORITHMS: Registry[Algorithm] = Registry("mepof.algorithm", "ALGORITHM", "algorithm", Algorithm)


def parts(name: str) -> tuple[Algorithm, ...]:
    """The algorithms of a stack such as ``autofdo+propeller``, the lowest first.

    Raises:
        InputError: one is unknown.
    """
    return tuple(ALGORITHMS.get(part) for part in name.split("+"))
