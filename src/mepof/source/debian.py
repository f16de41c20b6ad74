"""Debian's packages of kernel source: installed, or of any suite and version by apt.

apt finds, verifies and downloads packages; it needs no root here, because lists that are newer than
the machine's, or of other suites, and archives lie in the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.kernel.source import check_kernel
from mepof.plan.digest import file_digest
from mepof.process import Completed, find_tool, run
from mepof.source.protocol import Pin, Workshop, locked
from mepof.source.unpack import extract

PREFIX = "debian:"
INSTALLED = Path("/usr/src")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Debian policy 5.6.12 on versions, and the names of suites and codenames.
_FORM = re.compile(
    r"debian:(?P<package>[a-z0-9][a-z0-9+.-]*)"
    r"(=(?P<version>[0-9][A-Za-z0-9.+~:-]*))?"
    r"(/(?P<suite>[a-z][a-z0-9.+-]*))?"
)
_PACKAGE = re.compile(r"linux-source-\d+\.\d+")
_FIELD = re.compile(r"^(Package|Version|SHA256|Filename): (\S+)$", re.M)
_SHOWN = 4
_UPDATE_SECONDS, _DOWNLOAD_SECONDS = 600.0, 4 * 3600.0
_POLITE = ("-o", "Acquire::Retries=5", "-o", "APT::Get::AllowUnauthenticated=false")


@dataclass(frozen=True)
class _Asked:
    """A package, and the version and suite that an address limits it to."""

    package: str
    version: str | None
    suite: str | None


@dataclass(frozen=True)
class _Package:
    """A package that apt offers: its version, and the SHA-256 of its file."""

    version: str
    sha256: str


class DebianSource:
    """``debian:linux-source-6.12``, ``…=6.12.94-1``, ``…/bookworm-backports``, or both."""

    def reads(self, address: str) -> bool:
        return address.startswith(PREFIX)

    def parse(self, address: str) -> None:
        _parsed(address)

    def host(self, address: str) -> None:
        return None

    def check(self, address: str) -> None:
        _parsed(address)

    def pin(self, address: str, workshop: Workshop) -> Pin:
        asked = _parsed(address)
        if _installed(asked) is not None:
            # A pin would change the fingerprint; the tarball's digest is in the identity.
            if asked.version is None and (version := _installed_version(asked.package)):
                workshop.note(f"{asked.package} is version {version}, which is installed")
            return {}
        apt = _Apt(asked.suite, workshop)
        found = apt.package(asked)
        if asked.version is None:
            where = f" of {asked.suite}" if asked.suite else ""
            workshop.note(f"{asked.package}{where} is version {found.version} now")
        return {"version": found.version, "sha256": found.sha256}

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        asked = _parsed(address)
        if pin:
            return {}
        tarball = _installed(asked)
        if tarball is None:
            raise _not_installed(asked.package)
        return {"source": file_digest(tarball)}

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        asked = _parsed(address)
        if pin:
            archive = _Apt(asked.suite, workshop).download(asked.package, pin)
            tarball = _tarball_in(archive, asked.package, workshop)
        else:
            installed = _installed(asked)
            if installed is None:
                raise _not_installed(asked.package)
            tarball = installed
        extract(tarball, output, workshop, address)
        check_kernel(output, address)


def installed_tarball(package: str, directory: Path | None = None) -> Path | None:
    """The tarball that an installed package has, if it is installed."""
    return next(iter(sorted((directory or INSTALLED).glob(f"{package}.tar*"))), None)


def versions(address: str, workshop: Workshop) -> tuple[str, ...]:
    """The versions of a package that its archives have now, the newest first.

    Raises:
        WorkError: an archive cannot be read.
    """
    asked = _parsed(address)
    apt = _Apt(asked.suite, workshop)
    apt.refresh()
    return tuple(found.version for found in apt.known(asked.package))


def _parsed(address: str) -> _Asked:
    form = _FORM.fullmatch(address)
    if form is None or _PACKAGE.fullmatch(form["package"]) is None:
        raise InputError(
            f"`{address}` is not a Debian kernel source package",
            "write it like debian:linux-source-6.12, …=6.12.94-1 or …/bookworm-backports",
        )
    return _Asked(form["package"], form["version"], form["suite"])


def _installed(asked: _Asked) -> Path | None:
    """The tarball of the installed package, if it is what is asked for."""
    tarball = installed_tarball(asked.package)
    if tarball is None or asked.suite is not None:
        return None
    if asked.version not in (None, _installed_version(asked.package)):
        return None
    return tarball


def _installed_version(package: str) -> str | None:
    try:
        query = ["dpkg-query", "--show", "--showformat=${Version}", package]
        done = run(query, check=False)
    except EnvironmentLack:
        return None
    return done.output.strip() if done.status == 0 else None


def _not_installed(package: str) -> EnvironmentLack:
    return EnvironmentLack(f"{package} is not installed", f"apt-get install {package}")


def _tarball_in(archive: Path, package: str, workshop: Workshop) -> Path:
    """The tarball inside a package's file."""
    inside = workshop.work / "package"
    deb = find_tool("dpkg-deb", "apt-get install dpkg")
    done = workshop.run([deb, "--extract", archive, inside], check=False)
    tarball = installed_tarball(package, inside / "usr/src")
    if done.status != 0 or tarball is None:
        why = done.output.strip() if done.status else "no tarball in usr/src"
        raise InputError(f"{archive} is not a package of kernel source: {why}")
    return tarball


class _Apt:
    """apt, with the machine's configuration or for one suite.

    Args:
        suite: one that the machine's configuration may not have; its lists are kept in the cache.
            None is the machine's configuration, with the machine's lists until they are too old.
    """

    def __init__(self, suite: str | None, workshop: Workshop) -> None:
        self._suite = suite
        self._workshop = workshop
        self._root = workshop.cache / "apt"
        self._root.mkdir(parents=True, exist_ok=True)
        self._options: tuple[str, ...] | None = None if suite else ()

    def package(self, asked: _Asked) -> _Package:
        """The newest version that fits.

        Raises:
            InputError: there is none; the remedy lists those that exist.
            WorkError: the archive cannot be read.
        """
        known = self.known(asked.package, asked.version)
        for found in known:
            if asked.version in (None, found.version):
                return found
        where = f"{asked.suite}" if asked.suite else "apt's lists"
        if not known:
            raise InputError(
                f"{where} has no package {asked.package}"
                if asked.suite
                else f"{where} have no package {asked.package}",
                "name a suite that has it, as in debian:linux-source-6.1/bookworm"
                if asked.suite is None
                else "list what is there: apt-cache search linux-source-; or try another suite",
            )
        versions = ", ".join(found.version for found in known[:_SHOWN])
        raise InputError(
            f"{asked.package} has no version {asked.version} in {where}",
            f"there are {versions}",
        )

    def download(self, package: str, pin: Pin) -> Path:
        """The file of a package, which apt verifies; kept by its content."""
        kept = self._workshop.cache / "downloads" / pin["sha256"]
        if kept.is_file() and file_digest(kept) == pin["sha256"]:
            return kept
        kept.parent.mkdir(parents=True, exist_ok=True)
        # apt continues what it finds here.
        here = self._root / "archives"
        (here / "partial").mkdir(parents=True, exist_ok=True)
        name = f"{package}={pin['version']}"
        self._workshop.note(f"downloading {name}")
        self.known(package, pin["version"])
        with locked(self._root / "archives.lock", self._workshop, f"another run fetches {name}"):
            # A run that was killed may have left one of another version, or a part of this one.
            for left in here.glob(f"{package}_*.deb"):
                if file_digest(left) != pin["sha256"]:
                    left.unlink()
            options = (*self._configured(), "-o", f"Dir::Cache::archives={here}", *_POLITE)
            done = self._run("apt-get", (*options, "download", name), _DOWNLOAD_SECONDS, here)
            fetched = next(iter(sorted(here.glob(f"{package}_*.deb"))), None)
            if done.status != 0 or fetched is None:
                raise WorkError(
                    f"{name} cannot be downloaded: {_complaint(done.output)}",
                    "run it again: it continues where it stopped",
                )
            if (found := file_digest(fetched)) != pin["sha256"]:
                fetched.unlink()
                raise InputError(
                    f"{name} has the SHA-256 {found}, not {pin['sha256']} as planned",
                    "run it again, to plan it with what is there now",
                )
            fetched.replace(kept)
        return kept

    def known(self, package: str, version: str | None = None) -> list[_Package]:
        """Every version of a package that can be downloaded, the newest first.

        Args:
            version: one that is needed: lists of the machine that miss it are too old.
        """
        found = self._shown(package)
        if self._options == () and version not in (None, *(each.version for each in found)):
            self.refresh()
            found = self._shown(package)
        return found

    def refresh(self) -> None:
        """Read what the archives have now.

        Raises:
            WorkError: one cannot be read.
        """
        self._options = self._of_suite(self._suite) if self._suite else self._of_machine()

    def _shown(self, package: str) -> list[_Package]:
        done = self._run("apt-cache", (*self._configured(), "show", package), _UPDATE_SECONDS)
        found: dict[str, _Package] = {}
        for paragraph in done.output.split("\n\n"):
            fields = dict(_FIELD.findall(paragraph))
            # One without a file is installed, and no longer in any archive.
            if fields.get("Package") == package and "Filename" in fields and "SHA256" in fields:
                version = fields["Version"]
                found.setdefault(version, _Package(version, fields["SHA256"]))
        return list(found.values())

    def _configured(self) -> tuple[str, ...]:
        """The options by which apt sees the suite."""
        if self._options is None:
            self.refresh()
        assert self._options is not None
        return self._options

    def _of_machine(self) -> tuple[str, ...]:
        root = self._root / "machine"
        options = _apart(root)
        self._update(root, options, "apt's archives", "see what `apt-get update` says")
        return options

    def _of_suite(self, suite: str) -> tuple[str, ...]:
        archives = [a for a in self._archives() if (a.is_security == suite.endswith("-security"))]
        if not archives:
            raise EnvironmentLack(
                f"apt has no archive of Debian in which {suite} could be",
                "add one to /etc/apt/sources.list",
            )
        try:
            return self._suite_of(suite, archives)
        except WorkError:
            if len(archives) == 1:
                raise
        # Debian moves old suites to an archive of their own: each suite is in some archives only.
        having: list[_Archive] = []
        for archive in archives:
            try:
                options = self._suite_of(suite, [archive])
            except WorkError as error:
                lacking = error
            else:
                having.append(archive)
        if not having:
            raise lacking
        return options if len(having) == 1 else self._suite_of(suite, having)

    def _suite_of(self, suite: str, archives: Sequence[_Archive]) -> tuple[str, ...]:
        """The options by which apt sees the suite of some archives, which all have it."""
        name = sha256(repr((suite, archives)).encode()).hexdigest()[:16]
        root = self._root / f"{suite}-{name}"
        options = apt_of(root, [f"deb {signed_by()}{a.uri} {suite} main" for a in archives])
        remedy = "check its name; an archived suite needs its archive in /etc/apt/sources.list"
        self._update(root, options, f"the suite {suite}", remedy)
        return options

    def _update(self, root: Path, options: tuple[str, ...], what: str, remedy: str) -> None:
        with locked(root.with_suffix(".lock"), self._workshop, f"another run fetches {what}"):
            done = self._run("apt-get", (*options, *_POLITE, "update"), _UPDATE_SECONDS)
        if done.status != 0 or re.search(r"^(E|Err):", done.output, re.M):
            raise WorkError(f"{what} cannot be read: {_complaint(done.output)}", remedy)

    def _archives(self) -> list[_Archive]:
        """The archives of Debian in the machine's configuration."""
        shown = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
        argv = ("indextargets", "--format", shown, "Created-By: Packages")
        done = self._run("apt-get", argv, _UPDATE_SECONDS)
        rows = (line.split("|") for line in done.output.splitlines())
        return list(
            dict.fromkeys(
                _Archive(uri, label == "Debian-Security")
                for origin, label, uri in (row for row in rows if len(row) == 3)
                if origin in ("Debian", "Debian Backports")
            )
        )

    def _run(
        self, tool: str, arguments: tuple[str, ...], timeout: float, cwd: Path | None = None
    ) -> Completed:
        argv = [find_tool(tool, "Debian's packages need a machine with apt"), *arguments]
        return self._workshop.run(argv, env={"LC_ALL": "C"}, timeout=timeout, check=False, cwd=cwd)


@dataclass(frozen=True)
class _Archive:
    """An archive of Debian: its URI, and whether it is the one for security."""

    uri: str
    is_security: bool


def _complaint(output: str) -> str:
    """Why apt failed: what it says below its first failed request, else its first error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line, below in pairwise([*lines, ""]):
        if line.startswith("Err:") and below and not re.match(r"[A-Z][a-z]+:\d|[EW]: ", below):
            return below
    wrong = next((line for line in lines if line.startswith("E: ")), None)
    return (wrong or (lines[-1] if lines else "apt says nothing")).removeprefix("E: ")


def signed_by() -> str:
    """What a line of apt's sources says of keys: Debian's own, not all that apt trusts here.

    Without the package that has them it says nothing, and apt takes those that it trusts.
    """
    return f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""


def apt_of(root: Path, sources: Sequence[str]) -> tuple[str, ...]:
    """The options by which apt reads certain sources, and keeps its state apart from the machine's.

    Args:
        root: the directory of that state, which is made.
        sources: lines of its sources.
    """
    apart = _apart(root)
    (root / "sources.list").write_text("".join(f"{line}\n" for line in sources))
    (root / "status").touch()
    settings = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::status": root / "status",
    }
    return (*apart, *_words(settings))


def _apart(root: Path) -> tuple[str, ...]:
    """The options by which apt keeps what it downloads below a directory, which is made."""
    for each in ("lists/partial", "cache/archives/partial"):
        (root / each).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::State::lists": root / "lists",
        "Dir::Cache": root / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    return _words(settings)


def _words(settings: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))


SOURCE = DebianSource()
