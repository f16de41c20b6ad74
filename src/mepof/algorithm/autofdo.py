"""``autofdo``: Clang's sample profiles, from a recording of branches and debug lines.

The kernel that is profiled is an optimised one with line tables: nothing is instrumented, and
it runs at full speed. Kernels from 6.13 on have the option CONFIG_AUTOFDO_CLANG; an overlay gives
it to those before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof import _engine
from mepof.algorithm.branches import Branches, convert, merge_samples
from mepof.algorithm.pgo import without
from mepof.algorithm.protocol import BuildAddition, Conversion, Use
from mepof.kernel.kbuild import PROFILES
from mepof.process import Completed
from mepof.profile.quality import Quality
from mepof.toolchain.clang import Clang


class AutoFdo(Branches):
    """Sample profiles by function, line and discriminator, or by pseudo probe.

    Args:
        file: name of the profile.
        cflags: what the build has beside the kernel's own flags for AutoFDO.
        use_cflags: what a build that uses a profile has beside these.
        lines: the profile is one of debug lines.
    """

    def __init__(
        self,
        file: str,
        cflags: tuple[str, ...] = (),
        use_cflags: tuple[str, ...] = (),
        *,
        lines: bool,
    ) -> None:
        self.profile_names: tuple[str, ...] = (file,)
        self._file = file
        self._lines = lines
        self._use_cflags = use_cflags
        self._build = BuildAddition(
            overlays=(
                *("text-sections", "objtool-cold"),
                *("autofdo", "landing-pads", "line-discriminators"),
            ),
            config_lines=("CONFIG_AUTOFDO_CLANG=y",),
            cflags=(*_INLINABLE, *cflags),
        )

    def instrument(self, toolchain: Clang) -> BuildAddition:
        return self._build + BuildAddition(cflags=_FAITHFUL)

    def convert(self, conversion: Conversion) -> Quality:
        return convert(conversion, "autofdo", conversion.output / self._file, lines=self._lines)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> Quality:
        files = [(directory / self._file, weight) for directory, weight in weighted]
        return merge_samples(files, output / self._file)

    def use(self, profile: Path, build: Use) -> BuildAddition:
        return self._build + BuildAddition(
            cflags=(
                *self._use_cflags,
                *(() if build.same_source else _SALVAGE),
                *(_ACCURATE if build.exact else ()),
            ),
            variables={"CLANG_AUTOFDO_PROFILE": f"{PROFILES}/{self._file}"},
            profiles={self._file: profile / self._file},
            opt_out=("-fno-profile-sample-use", "-fno-split-machine-functions"),
        )

    def drift(self, profile: Path, vmlinux: Path) -> Mapping[str, object] | None:
        found: dict[str, object] = json.loads(_engine.drift(profile / self._file, vmlinux, None))
        return found

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> BuildAddition:
        without(functions, "", "--sample", profile / self._file, output, toolchain, runner)
        return BuildAddition(
            cflags=(f"-fprofile-sample-use={PROFILES}/{output.name}",),
            profiles={output.name: output},
        )


# What loses the line that an instruction is of, or has one line in several places: a tail call
# that becomes a conditional jump, ends of blocks that are merged, blocks that are copied. Counts
# are then of another line, or of one of its places only.
_FAITHFUL = (
    "-fno-optimize-sibling-calls",
    *("-mllvm", "-enable-tail-merge=false"),
    *("-mllvm", "-disable-tail-duplicate", "-mllvm", "-disable-early-taildup"),
    *("-mllvm", "-tail-dup-placement=0"),
)

# The kernel marks its entry code as not to be instrumented, and Clang inlines nothing there that is
# not so marked too, whether or not anything is instrumented. Only with a profile of counters does
# it ignore the mark.
_INLINABLE = ("-D__no_profile_instrument_function__=__unused__",)

# What has no count did not run. And hot is what makes up 99.9 % of the counts, not 99 %: where all
# was counted, what is a little less hot is worth its inlining too.
_ACCURATE = ("-fprofile-sample-accurate", "-mllvm", "-profile-summary-cutoff-hot=999000")

# The compiler matches a profile with sources that have changed since.
_SALVAGE = ("-mllvm", "-salvage-stale-profile", "-mllvm", "-salvage-unused-profile")

ALGORITHM = AutoFdo("kernel.afdo", lines=True)
