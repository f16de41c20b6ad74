"""``gcc-pgo``: instrumentation-based PGO with GCC's counters of arcs and value profiles.

The instrumented kernel counts the arcs of every function, the targets of indirect calls, the values
of divisors and sizes, and the order of the functions' first runs. The run time that GCC expects
comes from the overlay ``gcov``, which offers the counts in debugfs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof.algorithm.protocol import EXECUTED_OBJECTS, BuildAddition, Conversion, Round, Use
from mepof.device.agent import Get, Put, Request
from mepof.errors import InputError
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.instrumentation import quality_of
from mepof.profile.quality import Quality
from mepof.profile.weighted import whole_weights
from mepof.toolchain import gcda
from mepof.toolchain.protocol import Toolchain, Tools

_DEBUGFS = "/sys/kernel/debug/mepof/gcov"
_FILE = "kernel.gcda.tar"
# The overlay's, in the build directory.
_PLUGIN = "scripts/gcc-plugins/mepof_counts_plugin.so"


class GccPgo:
    """Instrumentation of the whole kernel by GCC."""

    rounds = 1
    profile_names: tuple[str, ...] = (_FILE,)
    records_branches = False
    period: int | None = None
    same_build = False
    # The compiler counts before it optimises: a second round would give the same counts.
    repeats = False
    renews = False
    names_functions = False  # counts have checksums of names
    requires = frozenset({"gcc-instrumentation"})

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return BuildAddition(
            overlays=("gcov", *toolchain.overlays),
            config_lines=("CONFIG_DEBUG_FS=y",),
            # For kbuild alone: in the configuration, they would have every file compiled again.
            variables={
                "CONFIG_GCC_PLUGINS": "y",
                # Counted code falls off the end of functions that cannot return, into whatever
                # the linker puts there.
                "CONFIG_SECTION_MISMATCH_WARN_ONLY": "y",
            },
            cflags=(*toolchain.flags("count"), f"-fplugin={_PLUGIN}"),
            opt_out=toolchain.flags("drop-counting"),
        )

    def reset(self) -> tuple[Request, ...]:
        return (Put(f"{_DEBUGFS}/reset", 0o200, b"1"),)

    def collect(self, modules: bool) -> tuple[Request, ...]:
        return (Get(f"{_DEBUGFS}/counts.tar"),)

    def convert(self, conversion: Conversion) -> Quality:
        raw = [(path, Fraction(1)) for path in conversion.raw]
        return _sum(raw, conversion.output / _FILE, conversion.tools)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        files = [(directory / _FILE, weight) for directory, weight in weighted]
        return _sum(files, output / _FILE, tools)

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        raise InputError(
            "a profile of gcc-pgo cannot be renewed: its counts fit one source only",
            "collect it again",
        )

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        versions = {counts.major for counts in gcda.read_archive(files[_FILE]).values()}
        if not versions:
            raise InputError(f"{files[_FILE]} has no counts")
        if tools is None:
            return
        major = int(tools.toolchain.version.split(".")[0])
        if versions != {major}:
            raise InputError(
                f"{files[_FILE]} is of GCC {max(versions)}, not of {tools.toolchain.name}",
                "use the compiler version that made it: set toolchain",
            )

    def use(self, profile: Path, build: Use) -> BuildAddition:
        flags = build.toolchain.flags
        used = (
            *flags("use-counts"),
            *flags("quiet-counts"),
            *(() if build.cold_small else flags("keep-untrained")),
        )
        return BuildAddition(
            overlays=("gcov-use", "objtool-warn"),
            variables={"MEPOF_COUNTS": f"{PROFILES}/{_FILE}"},
            # -fno-profile-use also turns off what -O2 turns on, such as -finline-functions.
            selected=(FileFlags(profile / EXECUTED_OBJECTS, used, but=()),),
            profiles={_FILE: profile / _FILE},
        )

    def executed(self, profile: Path, tools: Tools) -> frozenset[str]:
        return tools.toolchain.executed(profile / _FILE, tools.run)

    def drop_unexecuted(self, profile: Path, tools: Tools) -> None:
        """Do nothing: the compiler keeps functions that never ran as they are, if told."""

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        return None

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> None:
        """Do nothing: counts do not name their functions."""


def _sum(weighted: Sequence[tuple[Path, Fraction]], output: Path, tools: Tools) -> Quality:
    whole = whole_weights([weight for _, weight in weighted])
    inputs = [(path, weight) for (path, _), weight in zip(weighted, whole, strict=True)]
    return quality_of(tools.toolchain.merge_profiles(inputs, output, tools.run))


ALGORITHM = GccPgo()
