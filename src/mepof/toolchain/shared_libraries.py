"""The shared libraries that a program of this machine needs, for a guest without any."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from platform import machine

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from mepof.errors import EnvironmentLack, InputError
from mepof.process import of_machine, run

# ld.so(8): the directory of the file that names it.
_ORIGIN = re.compile(r"\$(?:ORIGIN\b|\{ORIGIN\})")
_MUSL = re.compile(r"/lib/(ld-musl-\w+)\.so\.1")
# Where musl's loader looks without a file that says so (its ldso/dynlink.c).
_MUSL_SEARCHED = "/lib:/usr/local/lib:/usr/lib"
_LISTED = re.compile(r"^\s*(\S+) \(libc6,([\w-]+).*\) => (\S+)$")
#: What ldconfig calls a machine (glibc's elf/cache.c).
_NAMES = {"x86_64": "x86-64", "aarch64": "AArch64"}


@of_machine
@cache
def closure(program: str, package: str | None) -> tuple[Path, ...]:
    """A program, its interpreter, and all libraries, each under the name by which it is looked up.

    Args:
        package: what installs the program; None for one of the user's own.

    Raises:
        EnvironmentLack: the program of a package or one of its libraries is missing.
        InputError: likewise, of one of the user's own; it is not an ELF program.
    """
    if not Path(program).is_file():
        if package is None:
            raise InputError(
                f"{program} does not exist",
                "build it, correct its path, or name the `package` that installs it",
            )
        raise EnvironmentLack(f"{program} is not installed", f"apt-get install {package}")
    found: dict[Path, None] = {}
    paths = _musl_paths(Path(program))
    ahead = [Path(program)]
    while ahead:
        path = ahead.pop()
        if path in found:
            continue
        found[path] = None
        try:
            # A library without a directory was not found; one of that name may be right here.
            if path != Path(program) and not path.is_absolute():
                raise FileNotFoundError(path)
            with path.open("rb") as file:
                ahead += _needed(ELFFile(file), path, paths)
        except (OSError, ELFError) as error:
            if path == Path(program) and isinstance(error, ELFError):
                raise InputError(
                    f"{program} is not an ELF program", "lay scripts by `files` or `directory`"
                ) from error
            what = f"{program} needs {path}"
            if isinstance(error, FileNotFoundError):
                what += ", which is not installed"
            else:
                what += f": {error.strerror if isinstance(error, OSError) else error}"
            if package is None:
                remedy = "install it, or link the program with `-Wl,-rpath` and its directory"
                # What it finds relative to itself is not beside a link to it.
                if Path(program).is_symlink():
                    remedy = f"name the program that it is a link to: {Path(program).resolve()}"
                raise InputError(what, remedy) from error
            raise EnvironmentLack(what, f"apt-get install {package}") from error
    if paths is not None and paths.is_file():
        found[paths] = None
    return tuple(sorted(found))


def _musl_paths(program: Path) -> Path | None:
    """The file that tells musl's loader where libraries are; None if another one loads a program
    or nobody knows."""
    try:
        with program.open("rb") as file:
            interpreters = _interpreters(ELFFile(file))
    except (OSError, ELFError):
        return None
    loaders = (_MUSL.fullmatch(each) for each in interpreters)
    return next((Path(f"/etc/{each[1]}.path") for each in loaders if each), None)


def named_in(elf: ELFFile) -> list[str]:
    """The interpreter of a program, as a path, and the names of the libraries that it needs."""
    dynamic = elf.get_section_by_name(".dynamic")
    libraries = _texts(dynamic, "DT_NEEDED") if isinstance(dynamic, DynamicSection) else []
    return [*_interpreters(elf), *libraries]


def _interpreters(elf: ELFFile) -> list[str]:
    found: list[str] = []
    for segment in elf.iter_segments("PT_INTERP"):
        assert isinstance(segment, InterpSegment)
        found.append(segment.get_interp_name())
    return found


def _needed(elf: ELFFile, path: Path, musl_paths: Path | None) -> list[Path]:
    """What a file itself names: its interpreter, and libraries in its own directories or in the
    linker's cache, or where musl's loader looks."""
    named = list(map(Path, _interpreters(elf)))
    dynamic = elf.get_section_by_name(".dynamic")
    if not isinstance(dynamic, DynamicSection):
        return named
    own = [*_texts(dynamic, "DT_RUNPATH"), *_texts(dynamic, "DT_RPATH")]
    directories = [
        Path(_ORIGIN.sub(lambda _: str(path.parent), directory))
        for joined in own
        for directory in joined.split(":")
    ]
    known = _cache()
    if musl_paths is not None:
        known = {}
        text = musl_paths.read_text() if musl_paths.is_file() else _MUSL_SEARCHED
        directories += map(Path, re.split(r"[:\n]", text.strip()))
    for name in _texts(dynamic, "DT_NEEDED"):
        beside = [each / name for each in directories if (each / name).is_file()]
        named.append(beside[0] if beside else known.get(name, Path(name)))
    return named


def _texts(dynamic: DynamicSection, tag: str) -> list[str]:
    """The texts of all entries with a tag; the reader's attribute has the tag's name."""
    attribute = tag.removeprefix("DT_").lower()
    return [getattr(entry, attribute) for entry in dynamic.iter_tags(tag)]


@of_machine
@cache
def _cache() -> dict[str, Path]:
    """Files by library name, as in the dynamic linker's cache."""
    return listed(run(["/sbin/ldconfig", "-p"]).output, machine())


def listed(text: str, cpu: str) -> dict[str, Path]:
    """Files by library name, of what ``ldconfig -p`` lists; the first of a name counts.

    Args:
        cpu: whose libraries, as ``uname -m`` prints it.
    """
    found: dict[str, Path] = {}
    for line in text.splitlines():
        if (match := _LISTED.match(line)) is not None and match[2] == _NAMES.get(cpu):
            found.setdefault(match[1], Path(match[3]))
    return found
