"""``autofdo``: Clang's sample profiles, from a branch trace and debug lines.

The kernel that is profiled is an optimised one with line tables: nothing is instrumented, and
it runs at full speed. Kernels from 6.13 on have CONFIG_AUTOFDO_CLANG, which is not used: an option
that differs would recompile every file, and only those in which something ran use the profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof import _engine
from mepof.algorithm.branches import (
    Branches,
    convert,
    merge_samples,
    recorded_modules,
    renew_samples,
)
from mepof.algorithm.protocol import (
    EXECUTED_OBJECTS,
    BuildAddition,
    Conversion,
    Round,
    Use,
)
from mepof.errors import InputError
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

# What the link and objtool need for split functions and functions in sections of their own.
_LINK = BuildAddition(
    overlays=("text-sections", "objtool-cold", "objtool-warn", "objtool-weak"),
    module_overlays=("text-sections-modules",),
)
# More functions than a kernel has.
_ALL = 2**31


class AutoFdo(Branches):
    """Sample profiles by function, line and discriminator, or by pseudo probe.

    Args:
        file: name of the profile.
        probes: basic blocks are marked by pseudo probes; otherwise by debug lines.
    """

    def __init__(self, file: str, *, probes: bool) -> None:
        self.profile_names: tuple[str, ...] = (file,)
        self.requires = frozenset({"llvm-samples", *(("pseudo-probes",) if probes else ())})
        self._file = file
        self._probes = probes

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return _LINK + BuildAddition(
            cflags=(*self._matching(toolchain), *toolchain.flags("keep-lines"))
        )

    def _matching(self, toolchain: Toolchain, *, lines: bool = True) -> tuple[str, ...]:
        """What both builds have: the one that is profiled, and the one that uses the profile.

        Args:
            lines: write line tables too, which do not change the code.
        """
        return (
            *toolchain.flags("discriminators"),
            *(toolchain.flags("profiling-lines") if lines else ()),
            *toolchain.flags("inline-unmarked"),
            *(toolchain.flags("probes") if self._probes else ()),
        )

    def convert(self, conversion: Conversion) -> Quality:
        output = conversion.output / self._file
        modules = recorded_modules(conversion.build, conversion.raw)
        return convert(conversion, "autofdo", output, lines=not self._probes, modules=modules)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        files = [(directory / self._file, weight) for directory, weight in weighted]
        return merge_samples(files, output / self._file)

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        file = self._file
        return renew_samples(new / file, old / file, decay, output / file)

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        given = files[self._file]
        has_probes = json.loads(_engine.show(given, 1, 0))["probe_based"]
        if has_probes != self._probes:
            other = "autofdo-probe" if has_probes else "autofdo"
            raise InputError(
                f"{given} is a profile of {'pseudo probes' if has_probes else 'debug lines'}",
                f"it is one of `{other}`",
            )

    def use(self, profile: Path, build: Use) -> BuildAddition:
        flags = build.toolchain.flags
        file = f"{PROFILES}/{self._file}"
        used = (
            # What drift is computed from. The compiler itself keeps the lines that it matches by.
            *self._matching(build.toolchain, lines=not build.same_source),
            *flags("use-samples", profile=file),
            *flags("function-sections"),
            *flags("split-functions"),
            # A probe is identified by its distance from the one before, which may be in the other
            # part of a split function: the assembler of Clang 22 refuses that.
            *(flags("whole-functions") if self._probes else ()),
            *(() if build.same_source else flags("rematch-samples")),
            *(flags("exact-samples") if build.exact else ()),
            *(flags("unsampled-cold") if build.exact and build.cold_small else ()),
        )
        return _LINK + BuildAddition(
            overlays=build.toolchain.split_overlays,
            ldflags=flags("use-lto-samples", profile=file),
            selected=(FileFlags(profile / EXECUTED_OBJECTS, used),),
            profiles={self._file: profile / self._file},
            opt_out=flags("drop-samples"),
        )

    def executed(self, profile: Path, tools: Tools) -> frozenset[str]:
        shown = json.loads(_engine.show(profile / self._file, _ALL, 0))
        # Without a total it ran only where it was inlined, and its callers have its profile.
        return frozenset(each["name"] for each in shown["functions"] if each["total"])

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        found = _engine.drift(profile / self._file, build / "vmlinux", None)
        return Drift.model_validate_json(found)

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition:
        toolchain = tools.toolchain
        toolchain.drop_functions("samples", functions, profile / self._file, output, tools.run)
        return BuildAddition(
            cflags=toolchain.flags("use-samples", profile=f"{PROFILES}/{output.name}"),
            profiles={output.name: output},
        )


ALGORITHM = AutoFdo("kernel.afdo", probes=False)
