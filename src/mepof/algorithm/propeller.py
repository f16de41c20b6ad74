"""``propeller``: the layout of basic blocks and functions, from a branch trace.

A round on top of any build: the kernel that runs is that build with a map of its basic blocks. The
profile names blocks by their numbers in that exact build, so it fits no other. The build that uses
it differs only in the layout of the functions that the profile names, and only the files that
define one are recompiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from mepof.errors import InputError, WorkError
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.kernel.objects import objects_of
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

_LINK = BuildAddition(
    overlays=("text-sections", "objtool-cold", "objtool-warn", "objtool-weak", "propeller"),
    module_overlays=("text-sections-modules",),
)

_UNMERGEABLE = InputError(
    "Propeller profiles cannot be merged: each fits only one build",
    "record more work in one run, or merge the profiles of the algorithm below",
)


class Propeller(Branches):
    """Basic-block sections by a profile of the same build.

    Args:
        stem: what the names of the profile's files begin with.
        period: of the branch stacks that are sampled; None records every branch.
        path_cloning: copy blocks along hot paths, which only branch stacks show.
    """

    profile_names: tuple[str, ...]
    same_build = True
    repeats = False
    renews = False
    names_functions = False
    requires = frozenset({"basic-block-sections"})

    def __init__(
        self, stem: str = "kernel", *, period: int | None = None, path_cloning: bool = False
    ) -> None:
        self._stem = stem
        self._blocks, self._order, self._hot = self.profile_names = (
            f"{stem}.cc_profile",
            f"{stem}.ld_profile",
            f"{stem}.hot_objects",
        )
        self.period = period
        self._path_cloning = path_cloning

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        return self._mapped(toolchain, round.executed)

    def _mapped(self, toolchain: Toolchain, executed: Path | None) -> BuildAddition:
        """What both builds have, so that they share all objects without hot code."""
        flags = toolchain.flags("map-blocks")
        return _LINK + BuildAddition(
            ldflags=toolchain.flags("map-lto-blocks"),
            selected=(FileFlags(executed or ("%",), flags, layout=True),),
        )

    def convert(self, conversion: Conversion) -> Quality:
        output = conversion.output / self._stem
        quality = convert(conversion, "propeller", output, path_cloning=self._path_cloning)
        lines = (conversion.output / self._blocks).read_text(encoding="utf-8").splitlines()
        hot = objects_of(conversion.build, functions(lines))
        (conversion.output / self._hot).write_text("".join(f"{name}\n" for name in hot))
        return quality

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        raise _UNMERGEABLE

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        raise _UNMERGEABLE

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        try:
            lines = files[self._blocks].read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{files[self._blocks]} cannot be read as text: {error}") from error
        if not lines or not lines[0].startswith("v"):
            raise InputError(f"{files[self._blocks]} is not a Propeller profile")

    def use(self, profile: Path, build: Use) -> BuildAddition:
        blocks = f"{PROFILES}/{self._blocks}"
        flags = build.toolchain.flags
        return self._mapped(build.toolchain, profile / EXECUTED_OBJECTS) + BuildAddition(
            ldflags=(
                *flags("order-functions", order=f"{PROFILES}/{self._order}"),
                # Where the linker generates the code.
                *flags("place-lto-blocks", profile=blocks),
            ),
            selected=(
                FileFlags(
                    profile / self._hot,
                    (*flags("place-blocks", profile=blocks), *flags("function-sections")),
                    layout=True,
                ),
            ),
            profiles={name: profile / name for name in (self._blocks, self._order)},
            opt_out=flags("drop-blocks"),
        )

    def executed(self, profile: Path, tools: Tools) -> None:
        return None

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        return None

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition:
        spared = frozenset(functions)
        kept, file, keeps = [], "", True
        for line in (profile / self._blocks).read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("m "):  # the source file of the function that follows
                file = line
                continue
            if line.startswith("f "):
                keeps = spared.isdisjoint(line.split()[1:])
                line, file = file + line, ""
            if keeps or line.startswith("v"):
                kept.append(line)
        output.write_text("".join(kept), encoding="utf-8")
        return BuildAddition(
            cflags=tools.toolchain.flags("place-blocks", profile=f"{PROFILES}/{output.name}"),
            profiles={output.name: output},
        )


def functions(cc_profile: Iterable[str]) -> set[str]:
    """The functions that a ``cc_profile`` of version 1 names, by all their names.

    Raises:
        WorkError: it names none.
    """
    found = {name for line in cc_profile if line.startswith("f ") for name in line.split()[1:]}
    if not found:
        raise WorkError("no kernel function was executed", "let the scenario run more actions")
    return found


ALGORITHM = Propeller()
