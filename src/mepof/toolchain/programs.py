"""The programs of a toolchain: where they are, and what identifies them."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from shutil import which

from mepof.errors import EnvironmentLack, WorkError
from mepof.process import of_machine, run

NUMBER = re.compile(r"\b\d+\.\d+")
_LOADED = re.compile(r"=> (/.*) \(0x")
# What a link with the name of a compiler may lead to: it starts the next one of that name on PATH.
_LAUNCHERS = frozenset({"buildcache", "ccache", "distcc", "icecc", "sccache"})


def is_launched(path: str | Path) -> bool:
    """Whether a program is a link to what starts compilers, as those in ``/usr/lib/ccache`` are."""
    return Path(path).resolve().name in _LAUNCHERS and Path(path).name not in _LAUNCHERS


def find(program: str) -> str | None:
    """The path of a program, without links to what starts compilers: of a name, the one that these
    start."""
    path = which(program)
    if path is None or not is_launched(path):
        return path
    if os.sep in program:
        return None
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = (which(program, path=directory) for directory in directories)
    return next((each for each in found if each is not None and not is_launched(each)), None)


def named(command: str) -> str:
    """The name of a program on PATH, or its path where the name means what starts compilers."""
    path = which(command)
    return command if path is None or not is_launched(path) else find(command) or command


@of_machine
@cache
def banner_of(tool: str, remedy: str | None, words: tuple[str, ...] = ("--version",)) -> str:
    """The line in which a program reports its version, asked by these words."""
    path = find(tool)
    if path is None:
        raise EnvironmentLack(f"{tool} is not installed", remedy or "run `mepof doctor`")
    try:
        lines = [line.strip() for line in run([path, *words]).output.splitlines()]
    except WorkError as error:
        # It is there, so its package is installed already.
        needed = f"install what it needs, such as shared libraries: see `ldd {path}`"
        raise EnvironmentLack(error.message, needed) from error
    numbered = (line for line in lines if NUMBER.search(line))
    return next(numbered, lines[0] if lines else "unknown")


def identified(banner: str, *programs: str) -> str:
    """What a tool's version line and digests of those of its programs that are not the system's
    say of it."""
    own = [path for program in programs if (path := own_file(program)) is not None]
    return banner + "".join(f", {_digest(path)[:16]}" for path in own)


def own_file(program: str) -> Path | None:
    """The file of a program that is not the system's, whose versions say which build they are."""
    found = find(program)
    return None if found is None else _own(Path(found))


def _own(path: Path) -> Path | None:
    """What a path leads to, unless it is the system's."""
    real = path.resolve()
    is_systems = real.is_relative_to("/usr") and not real.is_relative_to("/usr/local")
    return None if is_systems else real


@of_machine
@cache
def _digest(path: Path) -> str:
    """The SHA-256 of a program, and of those of its shared libraries that are not the system's."""
    lister = which("ldd")
    listed = run([lister, path], check=False).output if lister else ""
    loaded = (each.group(1) for each in map(_LOADED.search, listed.splitlines()) if each)
    found = hashlib.sha256()
    for part in (str(path), *sorted(loaded)):
        if (own := _own(Path(part))) is not None:
            with own.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


@of_machine
@cache
def version_of(tool: str, remedy: str | None) -> str:
    """The version that a compiler reports."""
    found = re.search(r"version (\d+(?:\.\d+)*)", banner_of(tool, remedy))
    if found is None:
        raise EnvironmentLack(f"{tool} does not report its version", "run `mepof doctor`")
    return found.group(1)
