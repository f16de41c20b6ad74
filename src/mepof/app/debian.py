"""Debian packages with what they depend on, for a guest, from the package sources of this machine.

apt resolves them as on a machine without any package, so the result does not depend on what is
installed here. Nothing is installed: the archives are downloaded into the cache and read.
"""

from __future__ import annotations

import fcntl
import io
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof import arch as architectures
from mepof.app.image.layers import decompressed, overlay
from mepof.app.laid import Laid, is_directory
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.digest import file_digest
from mepof.plan.store import default_store
from mepof.process import find_tool, of_machine, run

#: What every `apt-get update` of this machine writes to.
HOST_LISTS = Path("/var/lib/apt/lists/partial")
_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) .*\[(\S+)\]\)")
_UNMET = re.compile(r" : (Pre-?Depends|Depends|Conflicts|Breaks): ")
# What only the scripts that a package runs when it is installed need; those do not run.
_FOR_INSTALLATION = frozenset(
    [
        *("adduser", "debconf", "dpkg", "init-system-helpers"),
        *("lsb-base", "sysvinit-utils", "ucf", "usrmerge"),
    ]
)
_UNREAD = ("doc", "doc-base", "info", "lintian", "locale", "man")
# Of the package base-files, from Debian 13 on.
_LINKS = ("bin", "lib", "lib64", "sbin")
# A member of the archive in which a package comes: deb(5), ar(5).
_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60


@dataclass(frozen=True)
class Package:
    """A package that was downloaded.

    Attributes:
        digest: SHA-256 of the ``.deb``.
        contents: the tar archive of its files.
    """

    version: str
    digest: str
    contents: Path

    def __str__(self) -> str:
        return f"{self.version} (SHA-256 {self.digest})"


@of_machine
@cache
def package_files(
    names: tuple[str, ...], left_out: tuple[str, ...], arch: str, release: str | None = None
) -> tuple[dict[str, Laid], dict[str, Package]]:
    """What packages and their dependencies lay into a guest.

    Args:
        names: of the packages.
        left_out: dependencies to do without, with what only they depend on.
        arch: of the guest.
        release: whose packages are preferred, such as ``bookworm-backports``.

    Returns:
        The files by path, and each package by name. Manuals and translations are left out.

    Raises:
        InputError: a package is unknown, its dependencies cannot be satisfied, or what is left out
            is not one of them.
        EnvironmentLack: there is no apt, or a package cannot be downloaded.
    """
    debian = architectures.get(arch).guest_debian
    if debian is None:
        raise InputError(f"Debian's name of the architecture {arch} is not known")
    root = default_store() / "cache" / "packages" / debian
    preferred = () if release is None else ("-o", f"APT::Default-Release={release}")
    absent = _FOR_INSTALLATION - {*names}
    with _locked(root):
        # What apt found right once is not asked again: that takes it as long as the rest.
        known = root / "left-out" / sha256(repr((names, left_out, release)).encode()).hexdigest()
        if left_out and not known.exists():
            options = [*_options(root, debian, absent), *preferred]
            _check_left_out(left_out, names, options)
            known.parent.mkdir(exist_ok=True)
            known.touch()
        options = [*_options(root, debian, absent.union(left_out) - {*names}), *preferred]
        found = _resolve(names, options)
        archives = {
            (name, version): root / "archives" / f"{name}_{version.replace(':', '%3a')}_{of}.deb"
            for name, version, of in found
        }
        if any(not path.is_file() for path in archives.values()):
            _apt(options, "install", "--download-only", "-y", *names)
        files: dict[str, Laid] = {}
        packages: dict[str, Package] = {}
        for (name, version), path in archives.items():
            if not path.is_file():
                raise EnvironmentLack(f"apt-get did not download {path.name}", "apt-get update")
            digest = file_digest(path)
            contents = _data_of(path, digest, root / "unpacked")
            overlay(files, contents, f"the package {path.name}")
            packages[name] = Package(version, digest, contents)
    kept = {path: laid for path, laid in files.items() if not _is_unread(path)}
    # Where all packages lay their files below /usr, the links to there come with the system itself.
    tops = {path.partition("/")[0] for path in kept}
    kept |= {
        name: Laid(link=f"usr/{name}")
        for name in _LINKS
        if name not in tops and is_directory(f"usr/{name}", kept)
    }
    return kept, packages


def _is_unread(path: str) -> bool:
    usr, _, rest = path.partition("usr/share/")
    return not usr and rest.partition("/")[0] in _UNREAD


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    (root / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _options(root: Path, debian: str, present: AbstractSet[str]) -> list[str]:
    """Options with which apt reads a machine on which nothing is installed, except in name."""
    status = root / "status"
    status.write_text(
        "".join(
            f"Package: {name}\nStatus: install ok installed\nVersion: 9999:0\n"
            f"Architecture: {debian}\nMulti-Arch: foreign\nMaintainer: none\nDescription: none\n"
            + ("Provides: debconf-2.0\n\n" if name == "debconf" else "\n")
            for name in sorted(present)
        )
    )
    given = {
        "Dir::State::status": status,
        "Dir::State::extended_states": root / "extended",
        "Dir::Cache::archives": root / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Architecture": debian,
        "APT::Architectures": debian,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        # The directory has a lock of its own.
        "Debug::NoLocking": "true",
    }
    options = [word for key, value in given.items() for word in ("-o", f"{key}={value}")]
    if debian == _host():
        return options
    # Lists of its own: this machine's apt need not know that architecture.
    lists = root / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    options += ["-o", f"Dir::State::lists={lists}"]
    known = any(lists.glob("*Packages*"))
    updated = root / "updated"
    if not known or _changed(HOST_LISTS) > _changed(updated):
        try:
            _apt(options, "update")
            updated.touch()
        except EnvironmentLack:
            if not known:
                raise
    return options


def _changed(path: Path) -> float:
    """When a file or directory last changed; 0 if it does not exist."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _host() -> str:
    return run([find_tool("dpkg", "apt-get install dpkg"), "--print-architecture"]).output.strip()


def _resolve(names: Sequence[str], options: Sequence[str]) -> list[tuple[str, str, str]]:
    """Name, version and architecture of every package."""
    said = _apt(options, "install", "--simulate", *names).splitlines()
    found = [match.groups() for line in said if (match := _INSTALLED.match(line))]
    return [(name, version, arch) for name, version, arch in found]


def _check_left_out(left_out: Sequence[str], names: Sequence[str], options: Sequence[str]) -> None:
    """Refuse to leave out what is not among the dependencies, such as a name with a mistake."""
    try:
        found = {name for name, _, _ in _resolve(names, options)} | _FOR_INSTALLATION
    except InputError:
        return  # perhaps what is left out is what cannot be installed
    for name in left_out:
        if name not in found:
            near = get_close_matches(name, found - {*names}, n=1)
            raise InputError(
                f"`leave_out` names {name}, which none of the `packages` depends on",
                f"did you mean `{near[0]}`?" if near else "remove it there",
            )


def _apt(options: Sequence[str], *words: str) -> str:
    program = find_tool("apt-get", "describe the program by `image` or `directory` instead")
    done = run([program, *options, *words], env={"LC_ALL": "C"}, check=False)
    if done.status == 0:
        return done.output
    lines = [line.strip() for line in done.output.splitlines() if line.strip()]
    unmet = [line for line in lines if _UNMET.search(line)]
    first = next((line for line in lines if line.startswith("E: ")), "E: no reason given")
    reason = (unmet[:1] or [first.removeprefix("E: ")])[0]
    if words[1:2] == ("--simulate",):
        raise InputError(f"apt-get: {reason}", "correct `packages`, or run apt-get update")
    raise EnvironmentLack(f"apt-get {words[0]}: {reason}", "apt-get update")


def _data_of(package: Path, digest: str, unpacked: Path) -> Path:
    """The tar archive of a package's files."""
    what = f"the package {package.name}"
    with package.open("rb") as file:
        magic = file.read(len(_AR_MAGIC))
        while magic == _AR_MAGIC and len(header := file.read(_AR_HEADER)) == _AR_HEADER:
            name, size = header[:16].rstrip(b" /"), header[48:58].strip()
            if not size.isdigit():
                break
            if name.startswith(b"data.tar"):
                return decompressed(io.BytesIO(file.read(int(size))), digest, unpacked, what)
            file.seek(int(size) + int(size) % 2, io.SEEK_CUR)
    raise WorkError(f"{what} is damaged", f"rm {package}")
