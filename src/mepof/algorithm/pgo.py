"""``pgo``: instrumentation-based PGO with Clang's IR counters and value profiles.

The instrumented kernel counts the edges of every function, the targets of indirect calls
and the sizes of memory operations. The runtime that Clang expects comes from the
overlay ``pgo``, which offers the raw profile in debugfs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof.algorithm.protocol import BuildAddition, Conversion, Use
from mepof.device.agent import Get, Put, Request
from mepof.kernel.kbuild import PROFILES
from mepof.process import Completed
from mepof.profile.instrumentation import merge_profiles
from mepof.profile.quality import Quality
from mepof.toolchain.clang import Clang

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

    def instrument(self, toolchain: Clang) -> BuildAddition:
        return BuildAddition(
            overlays=("pgo",),
            # Where the raw profile is read; a configuration without it would tell only after
            # the boot.
            config_lines=("CONFIG_DEBUG_FS=y",),
            cflags=("-fprofile-generate", "-mllvm", f"-vp-counters-per-site={_NODES_PER_SITE}"),
        )

    def reset(self) -> tuple[Request, ...]:
        return (Put(f"{_DEBUGFS}/reset", 0o200, b"1"),)

    def collect(self) -> tuple[Request, ...]:
        return (Get(f"{_DEBUGFS}/vmlinux.profraw"),)

    def convert(self, conversion: Conversion) -> Quality:
        output = conversion.output / "kernel.profdata"
        raw = [(path, Fraction(1)) for path in conversion.raw]
        return merge_profiles(raw, output, conversion.toolchain, conversion.runner)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> Quality:
        files = [(directory / "kernel.profdata", weight) for directory, weight in weighted]
        return merge_profiles(files, output / "kernel.profdata", toolchain, runner)

    def use(self, profile: Path, build: Use) -> BuildAddition:
        return BuildAddition(
            cflags=(
                f"-fprofile-use={PROFILES}/kernel.profdata",
                # Code that the run never reached has no profile; that is no news.
                "-Wno-profile-instr-unprofiled",
                "-Wno-profile-instr-out-of-date",
                "-Wno-backend-plugin",
            ),
            profiles={"kernel.profdata": profile / "kernel.profdata"},
            opt_out=("-fno-profile-use",),
        )

    def drift(self, profile: Path, vmlinux: Path) -> Mapping[str, object] | None:
        return None

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> BuildAddition:
        # A static function is counted under the name of its file and its own.
        without(
            functions,
            r"(.*[;:])?",
            "--instr",
            profile / "kernel.profdata",
            output,
            toolchain,
            runner,
        )
        return BuildAddition(
            cflags=(f"-fprofile-use={PROFILES}/{output.name}",), profiles={output.name: output}
        )


def without(
    functions: Sequence[str],
    prefix: str,
    kind: str,
    profile: Path,
    output: Path,
    toolchain: Clang,
    runner: Callable[..., Completed],
) -> None:
    """Write a profile of the compiler's without some functions.

    Args:
        prefix: regular expression of what may stand before a name.
        kind: llvm-profdata's option for the kind of profile.
    """
    names = "|".join(map(re.escape, functions))
    profdata = toolchain.tool("llvm-profdata")
    runner([profdata, "merge", kind, f"--no-function=^{prefix}({names})$", profile, "-o", output])


ALGORITHM = Pgo()
