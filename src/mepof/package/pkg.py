"""``pkg``: packages for pacman, ``linux-NAME`` and ``linux-NAME-headers``, for Arch Linux and the
distributions that are made of it. What is installed where is that of the kernel's own
``scripts/package/PKGBUILD`` (Linux 7.3). Hooks of kmod and of the initramfs's maker do the rest, so
there is no script.

The form is that of makepkg's ``create_package`` (pacman 6.0): ``.BUILDINFO`` (BUILDINFO(5), format
1), ``.MTREE`` (mtree(5)) and ``.PKGINFO``, and then the files, in a tar archive.
"""

from __future__ import annotations

import hashlib
import re
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.arch import Arch
from mepof.errors import WorkError
from mepof.kernel.installed import HEADERS
from mepof.package.contents import (
    MAINTAINER,
    Content,
    File,
    Link,
    add,
    check_arch,
    check_release,
    data_of,
    directories,
    has_initrd,
    headers_beside,
    mode_of,
    unpacked,
    with_modules,
)
from mepof.package.protocol import Kernel
from mepof.process import find_tool, run
from mepof.tar import TIME
from mepof.toolchain.protocol import Run

_PROGRAM = "zstd"
# Deflated, with neither a name nor a time, on an unknown system.
_GZIP = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
# The most bytes of a block that is not compressed.
_STORED = 0xFFFF


class PacmanPackage:
    """A package for Arch Linux and others."""

    suffix = "pkg.tar.zst"
    beside = True
    takes_file = False
    has_modules = True
    of_source = False
    programs: tuple[tuple[str, str], ...] = ((_PROGRAM, _PROGRAM),)

    def check(self, arch: Arch, given: Path | None) -> None:
        check_arch(arch, "pacman")

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        self.check(kernel.arch, given)
        check_release(kernel.release)
        name = package_name(kernel)
        depends = ["coreutils"]
        depends += ["kmod"] if kernel.modules else []
        # mkinitcpio, dracut and booster provide it.
        depends += ["initramfs"] if has_initrd(kernel) else []
        about = f"Linux {kernel.release}, built by mepof with {kernel.compiler}"
        _write(target, _fields(kernel, name, about, depends), dict(_files(kernel)))
        if (kernel.build / HEADERS).is_file():
            about = f"headers of Linux {kernel.release}, for {kernel.compiler}"
            # Libraries of the programs in it.
            fields = _fields(kernel, f"{name}-headers", about, ["glibc", "libelf"])
            _write(headers_beside(target), fields, dict(_headers(kernel)))


def package_name(kernel: Kernel) -> str:
    """The name of a kernel's package, by which its initramfs and boot entry are named too:
    ``linux`` is Arch Linux's own."""
    own = kernel.release.removeprefix(kernel.version).strip("-+._")
    return f"linux-{own or 'mepof'}"


def package_version(version: str, revision: int) -> str:
    """The version of a package: a release candidate comes before its release."""
    upstream = re.sub(r"-(?=rc[0-9])", "", version)
    return f"{re.sub(r'[^A-Za-z0-9._+]', '_', upstream)}-{revision}"


def read_fields(package: Path, run: Run) -> dict[str, str]:
    """What a package says of itself; of a field that it has several times, the last.

    Raises:
        WorkError: it cannot be read.
    """
    reader = find_tool("bsdtar", "apt-get install libarchive-tools")
    done = run([reader, "-xOqf", package, ".PKGINFO"], check=False)
    said = dict(line.split(" = ", 1) for line in done.output.splitlines() if " = " in line)
    if done.status != 0 or not said.keys() >= {"pkgname", "pkgver", "arch"}:
        raise WorkError(f"{package} cannot be read as a package")
    return said


def _directory(kernel: Kernel) -> str:
    return f"usr/lib/modules/{kernel.release}"


def _files(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    below = _directory(kernel)
    yield f"{below}/pkgbase", f"{package_name(kernel)}\n".encode()
    yield from with_modules(kernel, below)


def _headers(kernel: Kernel) -> Iterator[tuple[str, Content]]:
    below = f"{_directory(kernel)}/build"
    yield from unpacked(kernel.build / HEADERS, below)
    yield f"usr/src/{package_name(kernel)}", Link(f"../../{below}")


def _fields(kernel: Kernel, name: str, about: str, depends: list[str]) -> list[tuple[str, str]]:
    """The lines of ``.PKGINFO``, but for the size."""
    return [
        ("pkgname", name),
        ("pkgbase", package_name(kernel)),
        ("pkgver", package_version(kernel.version, kernel.revision)),
        ("pkgdesc", about),
        ("builddate", str(TIME)),
        ("packager", MAINTAINER),
        ("arch", kernel.arch.cpu),
        ("license", "GPL-2.0-only"),
        *(("depend", each) for each in depends),
    ]


def _write(target: Path, fields: list[tuple[str, str]], files: Mapping[str, Content]) -> None:
    size = sum(len(data_of(each)) for each in files.values() if not isinstance(each, Link))
    said = dict(fields)
    built = [
        ("format", "1"),
        *((name, said[name]) for name in ("pkgname", "pkgbase", "pkgver", "packager", "builddate")),
        ("pkgarch", said["arch"]),
    ]
    inside: dict[str, Content] = {
        ".BUILDINFO": _lines(built),
        ".PKGINFO": _lines((*fields, ("size", str(size)))),
        **files,
    }
    inside[".MTREE"] = _gzipped("\n".join(_mtree(inside)).encode())
    with TemporaryDirectory(prefix=".pkg-", dir=target.parent) as scratch:
        plain = Path(scratch) / "made.tar"
        with tarfile.open(plain, "w", format=tarfile.GNU_FORMAT) as tar:
            for name, given in _sorted(inside):
                add(tar, name, given)
        program = find_tool(_PROGRAM, f"apt-get install {_PROGRAM}")
        # As many threads everywhere: their number decides what is written.
        run([program, "-q", "-f", "-19", "-T1", plain, "-o", target])


def _gzipped(data: bytes) -> bytes:
    """A gzip file (RFC 1952) of stored blocks (RFC 1951, 3.2.4): what a compressor makes, even
    without compression, depends on the build of zlib."""
    made = [_GZIP]
    for start in range(0, len(data), _STORED):
        block = data[start : start + _STORED]
        last = start + _STORED >= len(data)
        made += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    made.append(struct.pack("<II", zlib.crc32(data), len(data)))
    return b"".join(made)


def _sorted(files: Mapping[str, Content]) -> Iterator[tuple[str, Content | None]]:
    """Files and the directories above them (None): what describes the package comes first."""
    above: dict[str, Content | None] = {name: None for name in directories(files) if name}
    yield from sorted((above | dict(files)).items())


def _lines(fields: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{name} = {value}\n" for name, value in fields).encode()


def _mtree(files: Mapping[str, Content]) -> Iterator[str]:
    yield "#mtree"
    yield "/set type=file uid=0 gid=0 mode=644"
    for name, given in _sorted(files):
        path = f"./{_quoted(name)} time={TIME}.0"
        match given:
            case None:
                yield f"{path} mode=755 type=dir"
            case Link(to):
                yield f"{path} mode=777 type=link link={_quoted(to)}"
            case _:
                yield f"{path} {_described(given)}"
    yield ""


def _described(given: File) -> str:
    content = data_of(given)
    # The former is what `pacman -Qkk` compared until 6.0.
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    sha256 = hashlib.sha256(content).hexdigest()
    sums = f"md5digest={md5} sha256digest={sha256}"
    return f"mode={mode_of(given):o} size={len(content)} {sums}"


def _quoted(name: str) -> str:
    """A name as in mtree(5): with octal numbers for what could end it."""
    unsafe = rb"[^A-Za-z0-9._/+,:@~%-]"
    return re.sub(unsafe, lambda found: b"\\%03o" % found[0][0], name.encode()).decode()


FORMAT = PacmanPackage()
