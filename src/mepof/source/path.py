"""A directory with a tree, or a tarball, on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.errors import InputError
from mepof.kernel.source import check_kernel
from mepof.source.address import attribute_keys, scheme_of
from mepof.source.directory import note_left_out, taken
from mepof.source.mistaken import file_is, instead_of
from mepof.source.protocol import Pin, Workshop
from mepof.source.tarball import KEYS
from mepof.source.unpack import extract, is_tarball

# Of the other kinds; a path that begins like one is written `./git+x`.
_PREFIXES = ("debian:", "git+", "repo+")


def as_git(address: str) -> str | None:
    """How to name the commit of a local repository that an address without a scheme means."""
    location, _, ref = address.partition("#")
    return _as_git(Path(location), ref) if location and ref and Path(location).is_dir() else None


class PathSource:
    """A path; its content identifies it, and it is only read."""

    def reads(self, address: str) -> bool:
        return (
            not scheme_of(address)
            and not address.startswith(_PREFIXES)
            and attribute_keys(address).isdisjoint(KEYS)
        )

    def parse(self, address: str) -> None:
        pass

    def host(self, address: str) -> str:
        return address

    def check(self, address: str) -> None:
        path = Path(address)
        if path.is_dir():
            if _is_bare(path):
                raise InputError(f"{address} is a bare git repository", _as_git(path, "tag=NAME"))
            _check_tree(path)
        elif not path.is_file():
            raise InputError(f"{address} does not exist", as_git(address))
        elif not is_tarball(path):
            what, remedy = file_is(path)
            raise InputError(f"{address} is {what}", remedy)

    def pin(self, address: str, workshop: Workshop) -> Pin:
        return {}

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        path = Path(address)
        return taken(path).identity() if path.is_dir() else {}

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        origin = Path(address)
        if origin.is_dir():
            _check_tree(origin)
            found = taken(origin)
            note_left_out(found.left_out, workshop)
            found.copy(output)
        elif origin.is_file():
            extract(origin, output, workshop)
            check_kernel(output, origin)
        else:
            raise InputError(f"{address} does not exist")


def _check_tree(directory: Path) -> None:
    """Check that a directory is a kernel source tree that builds.

    Raises:
        InputError: it is not; the remedy names what may be meant.
    """
    try:
        check_kernel(directory, directory)
    except InputError as error:
        raise InputError(error.message, error.remedy or instead_of(directory)) from error


def _is_bare(directory: Path) -> bool:
    """Whether a directory is a git repository without a tree."""
    return (directory / "HEAD").is_file() and (directory / "objects").is_dir()


def _as_git(repository: Path, ref: str) -> str:
    return f"write git+file://{repository.absolute()}#{ref}"


SOURCE = PathSource()
