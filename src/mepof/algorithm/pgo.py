"""``pgo``: instrumentation-based PGO with Clang's IR counters and value profiles.

The instrumented kernel counts the edges of every function, the targets of indirect calls
and the sizes of memory operations. The runtime that Clang expects comes from the
overlay ``pgo``, which offers the raw profile in debugfs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof.algorithm.protocol import (
    EXECUTED_OBJECTS,
    BuildAddition,
    Conversion,
    Round,
    Use,
)
from mepof.device.agent import Get, Put, Request
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.kernel.objects import functions_in
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.counts import read_counts
from mepof.profile.discarded import matched_percent
from mepof.profile.instrumentation import (
    LLVM_INSTRUMENTATION,
    check_finished,
    merge_profiles,
    renew_profile,
)
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

_DEBUGFS = "/sys/kernel/debug/mepof/pgo"

# Value nodes that the compiler reserves for each site. One, its default, is used up by the
# few sites that see many targets (file operations, protocol handlers); those are the ones
# that promotion of indirect calls gains from.
NODES_PER_SITE = 4


def run_time(toolchain: Toolchain) -> BuildAddition:
    """What keeps the counts in the kernel."""
    return BuildAddition(
        overlays=("pgo", *toolchain.overlays),
        module_overlays=("pgo-modules",),
        # Where the raw profile is read: a configuration without debugfs would be noticed only after
        # the boot.
        config_lines=("CONFIG_DEBUG_FS=y",),
    )


class Pgo:
    """IR-level instrumentation of the whole kernel.

    Args:
        file: name of the profile.
    """

    rounds = 1
    records_branches = False
    period: int | None = None
    same_build = False
    # The compiler counts before it optimises: a second round would give the same counts.
    repeats = False
    renews = True
    names_functions = True
    requires = frozenset({LLVM_INSTRUMENTATION})

    def __init__(self, file: str) -> None:
        self.profile_names: tuple[str, ...] = (file,)
        self._file = file

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return run_time(toolchain) + BuildAddition(
            cflags=toolchain.flags("count", targets=NODES_PER_SITE),
            opt_out=toolchain.flags("drop-counting"),
        )

    def reset(self) -> tuple[Request, ...]:
        return (Put(f"{_DEBUGFS}/reset", 0o200, b"1"),)

    def collect(self, modules: bool) -> tuple[Request, ...]:
        files = ("vmlinux", "modules") if modules else ("vmlinux",)
        return tuple(Get(f"{_DEBUGFS}/{name}.profraw") for name in files)

    def convert(self, conversion: Conversion) -> Quality:
        output = conversion.output / self._file
        raw = [(path, Fraction(1)) for path in conversion.raw]
        return merge_profiles(raw, output, conversion.tools)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        files = [(directory / self._file, weight) for directory, weight in weighted]
        return merge_profiles(files, output / self._file, tools)

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        file = self._file
        return renew_profile(new / file, old / file, decay, output / file, tools)

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        check_finished(files[self._file], tools)

    def use(self, profile: Path, build: Use) -> BuildAddition:
        flags = build.toolchain.flags
        used = (
            *flags("use-counts", profile=f"{PROFILES}/{self._file}"),
            *flags("tell-discarded-counts" if build.same_source is False else "quiet-counts"),
        )
        return BuildAddition(
            overlays=("objtool-warn",),
            selected=(FileFlags(profile / EXECUTED_OBJECTS, used),),
            profiles={self._file: profile / self._file},
            opt_out=flags("drop-counts"),
        )

    def executed(self, profile: Path, tools: Tools) -> frozenset[str]:
        return tools.toolchain.executed(profile / self._file, tools.run)

    def drop_unexecuted(self, profile: Path, tools: Tools) -> None:
        file = profile / self._file
        tools.toolchain.drop_unexecuted(file, file, tools.run)

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        counted = read_counts(profile / self._file, tools.toolchain)
        return Drift(matched_percent=matched_percent(counted, functions_in(build), log))

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition:
        toolchain = tools.toolchain
        given = profile / self._file
        toolchain.drop_functions("counts", functions, given, output, tools.run)
        return BuildAddition(
            cflags=toolchain.flags("use-counts", profile=f"{PROFILES}/{output.name}"),
            profiles={output.name: output},
        )


ALGORITHM = Pgo("kernel.profdata")
