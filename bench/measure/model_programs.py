"""The programs by which the emulated PMU is compared with a machine: C files that define work()."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measure.debian_sources import DebianSources
from mepof.described import Described, read_described

_WORK = Path(__file__).parents[1] / "model"
_DESCRIPTION = "programs.toml"


class _Package(Described):
    """The files of a source package that a program consists of.

    Attributes:
        package: its name in Debian.
        files: patterns in its directory.
        without: likewise, of those that are left out.
        include: directories in it, for the preprocessor.
        own: such a directory beside the description, which comes first.
        flags: for the compiler.
    """

    package: str
    files: tuple[str, ...]
    without: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    own: str | None = None
    flags: tuple[str, ...] = ()


class _Descriptions(Described):
    suite: str
    programs: dict[str, _Package]


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        package: of Debian, that most of it comes from; empty for one of this project's own.
        files: C files, with that of main().
        flags: for the compiler.
    """

    name: str
    package: str
    files: tuple[Path, ...]
    flags: tuple[str, ...]


def names(sources: Path) -> tuple[str, ...]:
    """Every program of a directory, sorted."""
    return tuple(sorted(path.stem for path in sources.glob("*.c") if path.stem != "main"))


def load(sources: Path, chosen: tuple[str, ...], kept: Path) -> tuple[Program, ...]:
    """Programs of a directory; what they need of Debian's packages is fetched.

    Args:
        chosen: their names.
        kept: directory that keeps the packages.
    """
    description = sources / _DESCRIPTION
    if not description.is_file():
        return tuple(_program(sources, name, "", (), ()) for name in chosen)
    described = read_described(description, _Descriptions, "set of programs")
    debian = DebianSources(described.suite, kept)
    return tuple(_of_package(sources, n, described.programs[n], debian) for n in chosen)


def _of_package(sources: Path, name: str, package: _Package, debian: DebianSources) -> Program:
    root = debian.unpacked(package.package)
    without = {path for pattern in package.without for path in root.glob(pattern)}
    files = [path for pattern in package.files for path in sorted(root.glob(pattern))]
    own = () if package.own is None else (f"-I{sources / package.own}",)
    include = tuple(f"-I{root / directory}" for directory in package.include)
    # Other people's code: their warnings are not ours.
    flags = ("-w", *own, *include, *package.flags)
    return _program(
        sources, name, package.package, tuple(f for f in files if f not in without), flags
    )


def _program(
    sources: Path, name: str, package: str, files: tuple[Path, ...], flags: tuple[str, ...]
) -> Program:
    own = (_WORK / "main.c", sources / f"{name}.c")
    return Program(name, package, (*own, *files), (f"-I{_WORK}", *flags))
