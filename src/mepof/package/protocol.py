"""What a format of packages does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mepof.arch import Arch
from mepof.kernel.portable import Portable
from mepof.registry import Registry


@dataclass(frozen=True)
class Recipe:
    """What a kernel was built of.

    Attributes:
        algorithms: whose profiles it uses.
        same_build: the profile fits only this source, configuration and compiler.
        portable: what a tree needs to build it.
    """

    algorithms: tuple[str, ...]
    same_build: bool
    portable: Portable


@dataclass(frozen=True)
class Kernel:
    """A kernel that is packaged.

    Attributes:
        release: as the kernel calls itself, ``uname -r``.
        version: of its source, as its Makefile has it.
        compiler: name and version.
        build: the artifact.
        modules: without debug information, by their paths in the tree.
        revision: of the package; it grows where the same version is packaged again.
        compilers: Debian's packages of what compiled it, and compiles other modules for it.
        recipe: for formats of the source, what it was built of.
    """

    release: str
    version: str
    arch: Arch
    compiler: str
    build: Path
    modules: Mapping[str, Path] = field(default_factory=dict)
    revision: int = 1
    compilers: tuple[str, ...] = ()
    recipe: Recipe | None = None

    @property
    def image(self) -> Path:
        """The bootable image."""
        return self.build / "kernel"


class Format(Protocol):
    """One format.

    A method is optional: ``programs_for(given: Path)`` gives further ``programs`` that a package
    made of the given file needs.

    Attributes:
        suffix: of its files.
        beside: it is installed beside other kernels, so that each needs a release name of its own.
        takes_file: a program may name a file that it is made of: ``FORMAT:FILE``.
        has_modules: it has the kernel's modules; the others are made without them.
        of_source: it has what the kernel is built of, instead of the kernel.
        programs: that write it, each with the name of Debian's package.
    """

    suffix: str
    beside: bool
    takes_file: bool
    has_modules: bool
    of_source: bool
    programs: tuple[tuple[str, str], ...]

    def check(self, arch: Arch, given: Path | None) -> None:
        """Refuse what cannot be packaged, before anything is built.

        Args:
            given: the file that the program names, if it does.

        Raises:
            InputError: there is no such package for the architecture, or the file is wrong.
        """

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        """Write the package: the same bytes for the same kernel.

        A further package of the same kernel is written beside it; its name is that of ``target``
        with a word before the suffix.

        Raises:
            InputError: it cannot be made of this kernel.
        """


FORMATS: Registry[Format] = Registry("mepof.package", "FORMAT", "format of packages", Format)
