"""``pgo``: instrumentation-based PGO with Clang's IR counters and value profiles.

The instrumented kernel counts the edges of every function, the targets of indirect calls
and the sizes of memory operations. The runtime that Clang expects comes from the
overlay ``pgo``, which offers the raw profile in debugfs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from mepof.algorithm.protocol import BuildAddition, Conversion, Round, Use
from mepof.device.agent import Get, Put, Request
from mepof.kernel.kbuild import PROFILES
from mepof.profile.artifact import Drift
from mepof.profile.instrumentation import LLVM_INSTRUMENTATION, merge_profiles
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

_DEBUGFS = "/sys/kernel/debug/mepof/pgo"

# Value nodes that the compiler reserves for each site. One, its default, is used up by the
# few sites that see many targets (file operations, protocol handlers); those are the ones
# that promotion of indirect calls gains from.
_NODES_PER_SITE = 4


class Pgo:
    """IR-level instrumentation of the whole kernel."""

    rounds = 1
    profile_names = ("kernel.profdata",)
    records_branches = False
    same_build = False
    requires = frozenset({LLVM_INSTRUMENTATION})

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return BuildAddition(
            overlays=("pgo",),
            # Where the raw profile is read; a configuration without it would tell only after
            # the boot.
            config_lines=("CONFIG_DEBUG_FS=y",),
            cflags=toolchain.flags("count", targets=_NODES_PER_SITE),
        )

    def reset(self) -> tuple[Request, ...]:
        return (Put(f"{_DEBUGFS}/reset", 0o200, b"1"),)

    def collect(self) -> tuple[Request, ...]:
        return (Get(f"{_DEBUGFS}/vmlinux.profraw"),)

    def convert(self, conversion: Conversion) -> Quality:
        output = conversion.output / "kernel.profdata"
        raw = [(path, Fraction(1)) for path in conversion.raw]
        return merge_profiles(raw, output, conversion.tools)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        files = [(directory / "kernel.profdata", weight) for directory, weight in weighted]
        return merge_profiles(files, output / "kernel.profdata", tools)

    def use(self, profile: Path, build: Use) -> BuildAddition:
        flags = build.toolchain.flags
        return BuildAddition(
            cflags=(
                *flags("use-counts", profile=f"{PROFILES}/kernel.profdata"),
                *flags("quiet-counts"),
            ),
            profiles={"kernel.profdata": profile / "kernel.profdata"},
            opt_out=flags("drop-counts"),
        )

    def drift(self, profile: Path, vmlinux: Path) -> Drift | None:
        return None

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition:
        toolchain = tools.toolchain
        given = profile / "kernel.profdata"
        toolchain.drop_functions("counts", functions, given, output, tools.run)
        return BuildAddition(
            cflags=toolchain.flags("use-counts", profile=f"{PROFILES}/{output.name}"),
            profiles={output.name: output},
        )


ALGORITHM = Pgo()
