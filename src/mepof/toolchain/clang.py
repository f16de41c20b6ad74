"""Clang and the LLVM tools of one version, as Debian and LLVM install them side by side."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mepof.errors import EnvironmentLack
from mepof.process import run

NEWEST_KNOWN = 30
OLDEST_SUPPORTED = 19
OLDEST_MODELS = 22

# What a kernel build with a profile needs beside the compiler itself.
TOOLS = ("clang", "ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-profdata")


@dataclass(frozen=True)
class Clang:
    """The LLVM tools whose names end in ``suffix`` (``-22``; empty for unversioned names)."""

    suffix: str

    def tool(self, name: str) -> str:
        """The command name of one tool of this version."""
        return name + self.suffix

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.split(".")[0])

    @property
    def version(self) -> str:
        """The compiler's version, such as ``22.1.8``."""
        return _version(self.tool("clang"))

    def identity(self) -> dict[str, str]:
        """Version lines of the tools that decide what a build makes.

        Raises:
            EnvironmentLack: one of them is missing.
        """
        return {name: _banner(self.tool(name)) for name in ("clang", "ld.lld", "llvm-profdata")}

    def make_variables(self) -> dict[str, str]:
        """What kbuild is told: all tools from this version."""
        return {"LLVM": self.suffix or "1"}

    def resource_directory(self) -> Path:
        """Where the compiler keeps its own headers."""
        return Path(run([self.tool("clang"), "-print-resource-dir"]).output.strip())


def models_suffix(suffix: str) -> str:
    """The suffix of the LLVM whose scheduling models are read beside a Clang with that suffix.

    It is Clang's own unless that is too old: the emulated PMU needs the interface of LLVM 22.
    """
    version = suffix.removeprefix("-")
    return f"-{OLDEST_MODELS}" if version.isdigit() and int(version) < OLDEST_MODELS else suffix


@cache
def _banner(tool: str) -> str:
    major = tool.rpartition("-")[2]
    remedy = f"apt-get install clang-{major} lld-{major} llvm-{major}" if major.isdigit() else None
    path = shutil.which(tool)
    if path is None:
        raise EnvironmentLack(f"{tool} is not installed", remedy or "run `mepof doctor`")
    lines = [line.strip() for line in run([path, "--version"]).output.splitlines()]
    return next((line for line in lines if "version" in line), lines[0] if lines else "unknown")


@cache
def _version(tool: str) -> str:
    found = re.search(r"version (\d+(?:\.\d+)*)", _banner(tool))
    if found is None:
        raise EnvironmentLack(f"{tool} does not tell its version", "run `mepof doctor`")
    return found.group(1)


def installed() -> tuple[Clang, ...]:
    """Every supported version that has all its tools here, newest first."""
    candidates = [Clang(f"-{n}") for n in range(NEWEST_KNOWN, OLDEST_SUPPORTED - 1, -1)]
    complete = [c for c in candidates if all(shutil.which(c.tool(t)) for t in TOOLS)]
    plain = Clang("")
    if not complete and all(shutil.which(plain.tool(t)) for t in TOOLS):
        complete = [plain] if plain.major >= OLDEST_SUPPORTED else []
    return tuple(complete)


def select(name: str) -> Clang:
    """The toolchain of a G4 name: ``clang`` is the newest one here, ``clang-22`` that one.

    Raises:
        EnvironmentLack: it is not installed.
    """
    if name != "clang":
        chosen = Clang(name.removeprefix("clang"))
        for tool in TOOLS:
            _banner(chosen.tool(tool))
        return chosen
    found = installed()
    if not found:
        raise EnvironmentLack(
            f"no Clang of version {OLDEST_SUPPORTED} or newer with lld and llvm tools is installed",
            "run `make setup`",
        )
    return found[0]
