"""Kernel source: a directory, a tarball, or Debian's source package."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed, run

_DEBIAN_DIRECTORY = Path("/usr/src")

# Leftovers of a build in the tree, which would mislead a build outside it.
_BUILD_PRODUCTS = re.compile(
    r"(\.(o|a|ko|cmd|mod|mod\.c|order|dwo|lex\.c|tab\.[ch])|^\.config(\.old)?"
    r"|^vmlinux|^System\.map|^Module\.symvers)$"
)
_BUILD_DIRECTORIES = {"include/config", "include/generated"}


@dataclass(frozen=True)
class KernelVersion:
    """A kernel release such as 6.12.117, ordered."""

    version: int
    patchlevel: int
    sublevel: int

    def __str__(self) -> str:
        return f"{self.version}.{self.patchlevel}.{self.sublevel}"

    def at_least(self, version: int, patchlevel: int) -> bool:
        """Whether this is that release or a later one."""
        return (self.version, self.patchlevel) >= (version, patchlevel)


def debian_package(spec: str) -> str | None:
    """The package of a ``debian:PACKAGE`` spec; None where the spec is a path.

    Raises:
        InputError: it is not a package of kernel source.
    """
    if not spec.startswith("debian:"):
        return None
    package = spec.removeprefix("debian:")
    if not re.fullmatch(r"linux-source-\d+\.\d+", package):
        raise InputError(
            f"`{spec}` is not a Debian kernel source package",
            "write it like debian:linux-source-6.12",
        )
    return package


def debian_tarball(package: str, directory: Path = _DEBIAN_DIRECTORY) -> Path:
    """The tarball that the package installs.

    Raises:
        EnvironmentLack: the package is not installed.
    """
    for path in sorted(directory.glob(f"{package}.tar*")):
        return path
    raise EnvironmentLack(f"{package} is not installed", f"apt-get install {package}")


# The first bytes of what tar unpacks: xz, gzip, bzip2, zstd, lzip.
_COMPRESSED = (b"\xfd7zXZ\0", b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"LZIP")
# Where the header of a plain tar archive has its magic number.
_TAR_AT, _TAR = 257, b"ustar"


def check(origin: str) -> None:
    """Look at a source without unpacking it.

    Raises:
        InputError: it is neither a kernel tree nor a tarball.
    """
    if "://" in origin:
        raise InputError(
            f"{origin} is a URL, which mepof does not download", "download it, and name the tarball"
        )
    path = Path(origin)
    if path.is_dir():
        _check_kernel(path, path)
    elif path.is_file():
        with path.open("rb") as file:
            head = file.read(_TAR_AT + len(_TAR))
        if not head.startswith(_COMPRESSED) and head[_TAR_AT:] != _TAR:
            raise InputError(f"{origin} is neither a kernel source tree nor a tarball of one")
    else:
        raise InputError(f"{origin} does not exist")


def unpack(origin: Path, output: Path, runner: Callable[..., Completed] = run) -> KernelVersion:
    """Copy a tree or unpack a tarball into ``output``, an empty directory.

    Leftovers of a build in the tree are not copied; ``origin`` is only read.

    Args:
        runner: runs a program like :func:`mepof.process.run`.

    Raises:
        InputError: it does not exist, or is not kernel source.
    """
    if origin.is_dir():
        _check_kernel(origin, origin)
        _copy(origin, output)
    elif origin.is_file():
        _extract(origin, output, runner)
        _check_kernel(output, origin)
    else:
        raise InputError(f"{origin} does not exist")
    return version_of(output)


def _check_kernel(tree: Path, origin: Path) -> None:
    """Check a tree; errors name what the user gave us, not our copy of it."""
    if not (tree / "Kbuild").is_file():
        raise InputError(f"{origin} is not a kernel source tree: it has no Kbuild file")
    version_of(tree, origin)


def _copy(origin: Path, output: Path) -> None:
    def ignored(directory: str, names: list[str]) -> set[str]:
        inside = Path(directory).relative_to(origin).as_posix()
        prefix = "" if inside == "." else inside + "/"
        return {
            name
            for name in names
            if (_BUILD_PRODUCTS.search(name) and not (Path(directory) / name).is_dir())
            or name == ".git"
            or prefix + name in _BUILD_DIRECTORIES
            or (prefix + name).endswith("include/generated")
        }

    try:
        shutil.copytree(origin, output, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    except shutil.Error as error:  # it keeps only the messages of its files' errors
        source, _, why = error.args[0][0]
        if os.strerror(errno.ENOSPC) in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise InputError(f"{source} cannot be copied: {why}") from error


def _extract(origin: Path, output: Path, runner: Callable[..., Completed]) -> None:
    into = ["--directory", str(output), "--strip-components=1", "--no-same-owner"]
    done = runner(["tar", "--extract", *into, "--file", origin], check=False)
    if done.status != 0:
        complaint = done.output.partition("\n")[0].removeprefix("tar: ")
        # The disk is ours, the tarball is the user's.
        kind = WorkError if os.strerror(errno.ENOSPC) in done.output else InputError
        raise kind(f"{origin} cannot be unpacked: {complaint}")


def version_of(tree: Path, origin: Path | None = None) -> KernelVersion:
    """The release that the tree's Makefile states.

    Args:
        origin: the path that errors name instead of the tree's.

    Raises:
        InputError: it states none.
    """
    name = origin or tree
    try:
        head = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:2000]
    except OSError as error:
        raise InputError(f"{name} is not a kernel source tree: it has no Makefile") from error
    found = {
        key: re.search(rf"^{key}\s*=\s*(\d+)", head, re.M)
        for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    }
    numbers = [int(match.group(1)) for match in found.values() if match]
    if len(numbers) != 3:
        raise InputError(
            f"{name} is not a kernel source tree: its Makefile does not state a version"
        )
    return KernelVersion(*numbers)
