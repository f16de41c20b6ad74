"""``gcc-autofdo``: GCC's sample profiles, from a branch trace and debug lines.

As ``autofdo``, by GCC: the kernel that is profiled is an optimised one with line tables. What a
profile says of a copy that was inlined, GCC uses only where it inlines early again, which it does
where the profiled kernel had inlined the copy and it ran.
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
    select_functions,
)
from mepof.algorithm.protocol import EXECUTED_OBJECTS, BuildAddition, Conversion, Round, Use
from mepof.errors import InputError
from mepof.kernel.build_spec import PROFILES, FileFlags
from mepof.profile.aging import Aged, Decay
from mepof.profile.artifact import Drift
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain, Tools

_FILE = "kernel.gcov"
# More functions than a kernel has.
_ALL = 2**31
# What a compiler reads, by the first version that does: from 13 on, the blocks of a line are told
# apart.
_FORMS = {16: "gcov-16", 13: "gcov-13", 12: "gcov"}
# The version behind the magic, without which the compiler stops: AUTO_PROFILE_VERSION of
# gcc/auto-profile.cc.
_READ = {"gcov-16": 3, "gcov-13": 2, "gcov": 2}
# From then on, what is not in the profile is cold if nothing is said of it.
_FIRST_COLD = 16


class GccAutoFdo(Branches):
    """Sample profiles by function and line."""

    profile_names: tuple[str, ...] = (_FILE,)
    requires = frozenset({"gcc-samples"})

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        flags = toolchain.flags
        return BuildAddition(cflags=(*flags("keep-lines"), *flags("profiling-lines")))

    def convert(self, conversion: Conversion) -> Quality:
        form = _form(conversion.tools.toolchain)
        modules = recorded_modules(conversion.build, conversion.raw)
        return convert(conversion, form, conversion.output / _FILE, lines=True, modules=modules)

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        files = [(directory / _FILE, weight) for directory, weight in weighted]
        return merge_samples(files, output / _FILE, form=_form(tools.toolchain))

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        form = _form(tools.toolchain)
        return renew_samples(new / _FILE, old / _FILE, decay, output / _FILE, form=form)

    def check_profile(self, files: Mapping[str, Path], tools: Tools | None) -> None:
        shown = json.loads(_engine.show(files[_FILE], 1, 0))
        if shown["format"] != "gcov":
            raise InputError(
                f"{files[_FILE]} is a profile for Clang, not for GCC",
                "collect it with `gcc-autofdo`",
            )
        if tools is None:
            return
        with files[_FILE].open("rb") as file:
            version = int.from_bytes(file.read(8)[4:], "little")
        toolchain = tools.toolchain
        if version != _READ[form := _form(toolchain)]:
            raise InputError(
                f"{files[_FILE]} is for another version of GCC than {toolchain.name}",
                f"convert it with `mepof profile merge {files[_FILE]} --to {form} -o NAME.gcov`",
            )

    def use(self, profile: Path, build: Use) -> BuildAddition:
        flags = build.toolchain.flags
        used = flags("use-samples", profile=f"{PROFILES}/{_FILE}")
        if _major(build.toolchain) >= _FIRST_COLD and not build.cold_small:
            used = (*used, *flags("keep-untrained"))
        return BuildAddition(
            # GCC has no flag that turns -fauto-profile off with all that it turns on.
            selected=(FileFlags(profile / EXECUTED_OBJECTS, used, but=()),),
            profiles={_FILE: profile / _FILE},
        )

    def executed(self, profile: Path, tools: Tools) -> frozenset[str]:
        shown = json.loads(_engine.show(profile / _FILE, _ALL, 0))
        # Without a total it ran only where it was inlined, and its callers have its profile.
        return frozenset(each["name"] for each in shown["functions"] if each["total"])

    def drop_unexecuted(self, profile: Path, tools: Tools) -> None:
        """Remove the functions of which only inlined copies ran: GCC would call them cold."""
        file = profile / _FILE
        form = _form(tools.toolchain)
        select_functions(file, file, lambda name, function: function.total > 0, form=form)

    def drift(self, profile: Path, build: Path, log: Path, tools: Tools) -> Drift | None:
        return None

    def spare(
        self,
        profile: Path,
        functions: Sequence[str],
        output: Path,
        tools: Tools,
    ) -> BuildAddition:
        flags = tools.toolchain.flags
        dropped = {name.partition(".")[0] for name in functions}
        form = _form(tools.toolchain)
        select_functions(profile / _FILE, output, lambda name, _: name not in dropped, form=form)
        return BuildAddition(
            cflags=flags("use-samples", profile=f"{PROFILES}/{output.name}"),
            profiles={output.name: output},
        )


def _form(toolchain: Toolchain) -> str:
    """The engine's name for what a compiler reads.

    Raises:
        InputError: nothing that the engine writes.
    """
    form = next((form for first, form in _FORMS.items() if _major(toolchain) >= first), None)
    if form is None:
        raise InputError(
            f"{toolchain.name} reads AutoFDO profiles of another format",
            "use a newer GCC: set toolchain",
        )
    return form


def _major(toolchain: Toolchain) -> int:
    return int(toolchain.version.split(".")[0])


ALGORITHM = GccAutoFdo()
