"""What a repository is: lists of packages, from which a package manager installs and upgrades."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mepof.adapter.published import Published
from mepof.adapter.sign import Signer
from mepof.errors import WorkError
from mepof.package.contents import headers_beside
from mepof.registry import Registry
from mepof.toolchain.protocol import Run

#: Releases, each with its packages of one format.
Releases = Sequence[tuple[Published, Sequence[Path]]]


class Repository(Protocol):
    """A repository of one format of packages, whose name it has.

    Attributes:
        directory: of the lists, below what is published.
        programs: that write it, each with the name of Debian's package.
    """

    directory: str
    programs: tuple[tuple[str, str], ...]

    def metapackages(self, kernels: Sequence[Path], follow: str, work: Path) -> list[Path]:
        """Write the packages by which machines follow releases, if the format needs any.

        Args:
            kernels: the packages of a release, without those of headers.

        Raises:
            WorkError: a package cannot be read.
        """

    def write(
        self, lists: Path, follow: str, releases: Releases, signer: Signer | None, run: Run
    ) -> None:
        """Write and sign the lists of all packages of a follow: the same bytes, but for signatures,
        for the same releases.

        Args:
            lists: the directory, in the state of the index that is being written.

        Raises:
            WorkError: a package cannot be read, or a list cannot be signed.
        """


REPOSITORIES: Registry[Repository] = Registry(
    "mepof.adapter.repository", "REPOSITORY", "repository", Repository
)


def write_metapackages(
    kernels: Mapping[str, Path],
    names: tuple[str, str],
    work: Path,
    write: Callable[[Path, str, str, Path], None],
) -> list[Path]:
    """Write the metapackages that depend on the newest kernel and on its headers.

    Args:
        kernels: packages, by architecture.
        names: of the metapackages.
        write: a metapackage of a format, given the package, the name, what it stands for and the
            file.
    """
    made = []
    for arch, kernel in kernels.items():
        whats = ("the newest kernel", "headers of the newest kernel")
        for name, what, package in zip(names, whats, (kernel, headers_beside(kernel)), strict=True):
            if package.is_file():
                target = work / f"{name}-{arch}{kernel.suffix}"
                write(package, name, what, target)
                made.append(target)
    return made


def link(package: Path, lists: Path, name: str) -> Path:
    """Link to a package, beside the lists, by the name that it has there: package managers keep
    what they download by its name, and ``opt.rpm`` is in every release.

    Raises:
        WorkError: another package has that name.
    """
    made = lists / name
    if made.is_symlink():
        raise WorkError(
            f"{made.resolve()} and {package} are both {name}",
            "remove the directory of one of the two releases",
        )
    made.symlink_to(os.path.relpath(package, lists))
    return made
