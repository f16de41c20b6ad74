"""Recompilation options by their G4 names, from ``options.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mepof.kernel.kbuild import FileFlags

_DATA = Path(__file__).with_name("options.toml")


@dataclass(frozen=True)
class Option:
    """What an option adds to a build: Kconfig lines, compiler flags, and those of single files."""

    title: str
    config: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()
    files: tuple[FileFlags, ...] = ()


@cache
def options() -> dict[str, Option]:
    """Every option by its name, in the order of the data file."""
    with _DATA.open("rb") as file:
        described = tomllib.load(file)
    return {
        name: Option(
            entry["title"],
            tuple(entry.get("config", ())),
            tuple(entry.get("cflags", ())),
            tuple(FileFlags((file,), tuple(f)) for file, f in entry.get("files", {}).items()),
        )
        for name, entry in described.items()
    }
