"""``bolt``: the finished kernel rewritten by LLVM's BOLT, from a branch trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from mepof.algorithm.branches import Branches, convert
from mepof.algorithm.protocol import (
    EXECUTED_OBJECTS,
    BuildAddition,
    Conversion,
    Round,
    Use,
)
from mepof.errors import InputError
from mepof.kernel.build_spec import FileFlags, Rewriting
from mepof.kernel.rewriting import profiled_functions
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

_COUNTS = "kernel.fdata"

_UNMERGEABLE = InputError(
    "BOLT profiles cannot be merged: each fits only one build",
    "record more work in one run, or merge the profiles of the algorithm below",
)


class Bolt(Branches):
    """Blocks of the finished kernel laid out by a profile of the same kernel."""

    profile_names: tuple[str, ...] = (_COUNTS,)
    same_build = True
    repeats = False
    renews = False
    names_functions = False
    requires = frozenset({"binary-layout"})

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return self._rewritable(toolchain, round.executed, None)

    def _rewritable(
        self, toolchain: Toolchain, executed: Path | None, counts: Path | None
    ) -> BuildAddition:
        """What both builds have. BOLT leaves functions alone that the compiler has split."""
        split = executed is not None and executed.exists()
        whole = FileFlags(executed or (), toolchain.flags("whole-functions"), layout=True)
        return BuildAddition(
            overlays=("text-sections", "objtool-cold", "objtool-weak", "bolt"),
            module_overlays=("text-sections-modules",),
            selected=(whole,) if split else (),
            rewriting=Rewriting(counts),
        )

    def convert(self, conversion: Conversion) -> Quality:
        return convert(conversion, "bolt", conversion.output / _COUNTS)

    def merge(
        self, weighted: Sequence[tuple[Path, Fraction]], output: Path, tools: Tools
    ) -> Quality:
        raise _UNMERGEABLE

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        raise _UNMERGEABLE

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        path = files[_COUNTS]
        try:
            named = profiled_functions(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read as text: {error}") from error
        if not named:
            raise InputError(f"{path} is not BOLT's fdata")

    def use(self, profile: Path, build: Use) -> BuildAddition:
        counts = profile / _COUNTS
        return self._rewritable(build.toolchain, profile / EXECUTED_OBJECTS, counts)

    def executed(self, profile: Path, tools: Tools) -> None:
        return None

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        return None

    def spare(
        self, profile: Path, functions: Sequence[str], output: Path, tools: Tools
    ) -> BuildAddition:
        """Nothing to compile: the functions are left alone when the kernel is rewritten."""
        return BuildAddition()


ALGORITHM = Bolt()
