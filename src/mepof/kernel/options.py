"""Recompilation options by their G4 names, from ``options.toml``."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from pydantic import Field, RootModel

from mepof.described import Described, read_described
from mepof.kernel.build_spec import FileFlags
from mepof.kernel.description import BuildDescription

#: The group of the options that instrumented builds use too.
LEVEL = "optimisation level"

_DATA = Path(__file__).with_name("options.toml")


class Option(Described):
    """What an option adds to a build.

    Attributes:
        requires: capabilities of a toolchain without which it cannot be used.
        group: a program names at most one option of each group; empty for those of none.
        config: Kconfig lines.
        cflags: compiler flags of all files.
        profiled_cflags: compiler flags of the files that the profile is about.
        ldflags: flags for the linker.
        overlays: overlays for the tree.
        cold_small: code that no training ran is compiled for size.
        flags_only: the algorithm's flags are used without its profile.
        flags_of: further compiler flags of single files, by the path of their object.
    """

    title: str
    requires: frozenset[str] = frozenset()
    group: str = ""
    config: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()
    profiled_cflags: tuple[str, ...] = Field(default=(), alias="profiled-cflags")
    ldflags: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    cold_small: bool = Field(default=False, alias="cold-small")
    flags_only: bool = Field(default=False, alias="flags-only")
    flags_of: dict[str, tuple[str, ...]] = Field(default={}, alias="files")

    @property
    def files(self) -> tuple[FileFlags, ...]:
        """The compiler flags of single files."""
        return tuple(FileFlags((file,), flags) for file, flags in self.flags_of.items())


class Options(RootModel[dict[str, Option]]):
    """The data file: a table for each option."""


@cache
def options() -> dict[str, Option]:
    """Every option by its name, in the order of the data file."""
    return read_described(_DATA, Options, "options").root


@cache
def option_groups() -> dict[str, tuple[str, ...]]:
    """The options that exclude each other, by the name of their group, such as ``kind of LTO``."""
    found: dict[str, list[str]] = {}
    for name, option in options().items():
        if option.group:
            found.setdefault(option.group, []).append(name)
    return {group: tuple(names) for group, names in found.items()}


def added(
    build: BuildDescription, baseline: BuildDescription, config: Collection[str]
) -> tuple[str, ...]:
    """The options of a build that change the code of another one, which is without them, whether or
    not there is a profile.

    Args:
        config: the lines of the other one's configuration.
    """
    found: dict[str, str] = {}
    for name, option in options().items():
        lines, flags = set(option.config), set(option.cflags)
        has = lines <= set(build.config_lines) and flags <= set(build.cflags)
        if has and not (lines <= set(config) and flags <= set(baseline.cflags)):
            found[option.group or name] = name  # `O3` has the lines of `O2` as well
    return tuple(found.values())
