"""What packages install: files by their paths, which every format writes in its own way."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mepof.arch import Arch, records
from mepof.errors import InputError
from mepof.kernel.installed import DEVICE_TREES
from mepof.kernel.modules import lists_of_built_in
from mepof.package.protocol import Kernel
from mepof.tar import member

#: Who made a package, in each format's own field.
MAINTAINER = "mepof <mepof@localhost>"


@dataclass(frozen=True)
class Program:
    """An executable file."""

    content: bytes


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    to: str


File = bytes | Path | Program
"""What a file contains, or the file that contains the same."""
Content = File | Link


def data_of(given: File) -> bytes:
    """What a file contains."""
    match given:
        case Program(content):
            return content
        case Path():
            return given.read_bytes()
    return given


def mode_of(given: File) -> int:
    """The permissions of a file."""
    return 0o755 if isinstance(given, Program) else 0o644


def add(tar: tarfile.TarFile, name: str, given: Content | None) -> None:
    """Add a file, a link or, if nothing is given, a directory to an archive."""
    match given:
        case None:
            made = member(f"{name}/", mode=0o755)
            made.type = tarfile.DIRTYPE
            tar.addfile(made)
        case Link(to):
            made = member(name, mode=0o777)
            made.type, made.linkname = tarfile.SYMTYPE, to
            tar.addfile(made)
        case _:
            content = data_of(given)
            made = member(name, mode=mode_of(given), size=len(content))
            tar.addfile(made, io.BytesIO(content))


def directories(paths: Iterable[str]) -> list[str]:
    """Every directory above these paths, sorted; the root is empty."""
    found = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    return sorted("" if name == "." else name for name in found)


def modules(kernel: Kernel, below: str) -> Iterator[tuple[str, Content]]:
    """The kernel's modules, where modprobe looks for them, their order, and what is built in.

    Args:
        below: the directory of the release.
    """
    for path, file in kernel.modules.items():
        yield f"{below}/kernel/{path}", file
    if kernel.modules:
        order = "".join(f"kernel/{path}\n" for path in kernel.modules)
        yield f"{below}/modules.order", order.encode()
        for listed in lists_of_built_in(kernel.build):
            yield f"{below}/{listed.name}", listed


def with_modules(kernel: Kernel, below: str) -> Iterator[tuple[str, Content]]:
    """What distributions install in the modules' directory, as ``kernel.spec`` and ``PKGBUILD`` of
    the kernel do: image, configuration, symbols, modules and device trees.

    Args:
        below: the directory of the release.
    """
    yield f"{below}/vmlinuz", kernel.image
    for name in ("config", "System.map"):
        yield f"{below}/{name}", kernel.build / name
    yield from modules(kernel, below)
    yield from unpacked(kernel.build / DEVICE_TREES, f"{below}/dtb")


def unpacked(archive: Path, below: str) -> Iterator[tuple[str, Content]]:
    """The files of a tar archive, in a directory; none if there is no archive."""
    if not archive.is_file():
        return
    with tarfile.open(archive) as tar:
        for each in tar:
            file = tar.extractfile(each) if each.isfile() else None
            if file is None:
                yield f"{below}/{each.name}", Link(each.linkname)
            else:
                content = file.read()
                yield f"{below}/{each.name}", Program(content) if each.mode & 0o100 else content


def has_initrd(kernel: Kernel) -> bool:
    """Whether the kernel can start with an initramfs."""
    config = (kernel.build / "config").read_text(encoding="utf-8")
    return "CONFIG_BLK_DEV_INITRD=y" in config.splitlines()


def headers_beside(package: Path) -> Path:
    """The file of the package with headers, beside that of the kernel."""
    name, _, suffix = package.name.partition(".")
    return package.with_name(f"{name}.headers.{suffix}")


def check_arch(arch: Arch, distribution: str) -> None:
    """Refuse an architecture whose kernels no distribution installs.

    Raises:
        InputError: it is one.
    """
    if arch.debian is None:
        known = ", ".join(each.name for each in records() if each.debian is not None)
        raise InputError(
            f"{distribution} has no packages of kernels for {arch.name}", f"they exist for {known}"
        )


def check_release(release: str) -> None:
    """Refuse a release that cannot be part of the names of files and packages.

    Raises:
        InputError: it is one.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+_-]*", release):
        raise InputError(
            f"the kernel's release `{release}` cannot be part of a file's name",
            "change CONFIG_LOCALVERSION",
        )
