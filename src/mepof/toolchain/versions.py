"""Toolchains whose versions are installed side by side, as Debian does it (``clang-22``), or each
in a directory of its own, as Android does.

What such a toolchain is stands in a data file beside its module, and what a file cannot say in a
class derived from :class:`Versioned`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import Field

from mepof.arch import Arch
from mepof.described import Described, read_described
from mepof.errors import EnvironmentLack, InputError
from mepof.toolchain.programs import (
    NUMBER,
    banner_of,
    find,
    identified,
    is_launched,
    named,
    own_file,
    version_of,
)
from mepof.toolchain.protocol import Meaning, NeededFile, Program, Role, Run

# Below the directory of an SDK, or one that packages were unpacked to: where programs may be.
_BELOW = (
    *("bin", "*/bin", "bin/*", "usr/bin", "usr/bin/*", "sysroots/*/usr/bin/*"),
    *("lib/llvm-*/bin", "usr/lib/llvm-*/bin"),
)
# Directories that an error names: a toolchain may have one for each architecture or version.
_MAX_NAMED = 4
_BLANK = re.compile(r"\s")
# Roles of the tools that decide what a build makes.
_DECIDING: tuple[Role, ...] = ("compiler", "linker", "profile-merger")
# Roles of the tools that a build of modules needs.
_COMPILING: tuple[Role, ...] = ("compiler", "linker", "archiver", "nm", "objcopy")


class DescribedTool(Described):
    """A tool of a toolchain.

    Attributes:
        command: its name, without a version.
        package: Debian's, without a version.
        purpose: what needs it.
        versioned: whether the names of the command and of the package end in the version.
        optional: a version of the toolchain is complete without it.
        version: the words that make it report its version.
    """

    command: str
    package: str
    purpose: str
    versioned: bool = True
    optional: bool = False
    version: tuple[str, ...] = ("--version",)

    def named(self, suffix: str) -> str:
        """Its command in a version of the toolchain."""
        return self.command + (suffix if self.versioned else "")

    def package_of(self, suffix: str) -> str:
        """Its package in a version of the toolchain."""
        return self.package + (suffix if self.versioned else "")


class Description(Described):
    """What a data file says about a toolchain.

    Attributes:
        title: as its makers write it.
        min_version: the oldest major version that is supported.
        max_version: the newest major version that is looked for.
        capabilities: what it can do and not every toolchain can, and the oldest major version that
            can.
        exclusive: capabilities of which one build takes a single profile.
        overlays: what kernels that count need beyond the overlay of their algorithm, and the newest
            major version that needs it.
        split_overlays: what kernels with split functions need beyond those of their algorithm, and
            the oldest major version that needs it.
        tools: by their roles.
        flags: by their meanings, with the values in braces.
        rust: what rustc calls flags of the compiler, with the values in braces of those that end in
            ``=``.
    """

    title: str
    min_version: int = Field(gt=0)
    max_version: int = Field(gt=0)
    capabilities: dict[str, int] = Field(default={})
    exclusive: frozenset[str] = frozenset()
    overlays: dict[str, int] = Field(default={})
    split_overlays: dict[str, int] = Field(default={}, alias="split-overlays")
    tools: dict[Role, DescribedTool]
    flags: dict[Meaning, tuple[str, ...]]
    rust: dict[str, str] = Field(default={})

    def capabilities_of(self, major: int) -> frozenset[str]:
        """What a major version can do."""
        return frozenset(name for name, oldest in self.capabilities.items() if oldest <= major)

    def remedy(self, suffix: str) -> str | None:
        """The command that installs all tools of a version, except for optional ones."""
        if not suffix:
            return None
        needed = (tool for tool in self.tools.values() if not tool.optional)
        packages = dict.fromkeys(tool.package_of(suffix) for tool in needed)
        return "apt-get install " + " ".join(packages)


def read_description(path: Path) -> Description:
    """The description of a toolchain.

    Raises:
        InputError: it cannot be read, or is wrong.
    """
    return read_described(path, Description, "toolchain")


@dataclass(frozen=True)
class Versioned:
    """The tools whose names end in ``suffix`` (``-22``; empty for unversioned names), found by PATH
    or in one ``directory``."""

    #: Its G4 name, without a version.
    family: ClassVar[str]
    #: What its data file says.
    description: ClassVar[Description]

    suffix: str
    directory: Path | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        return self.family + (f":{self.directory}" if self.directory else self.suffix)

    @property
    def capabilities(self) -> frozenset[str]:
        described = self.description
        if max(described.capabilities.values(), default=0) <= described.min_version:
            return frozenset(described.capabilities)
        return described.capabilities_of(self.major)

    @property
    def overlays(self) -> tuple[str, ...]:
        newest = self.description.overlays
        return tuple(name for name in newest if self.major <= newest[name])

    @property
    def split_overlays(self) -> tuple[str, ...]:
        oldest = self.description.split_overlays
        return tuple(name for name in oldest if self.major >= oldest[name])

    @property
    def version(self) -> str:
        return self.version_for(None)

    def version_for(self, arch: Arch | None) -> str:
        return version_of(self.tool("compiler", arch), self.description.remedy(self.suffix))

    @property
    def major(self) -> int:
        """The major version: that of the tools' names, which need not be installed."""
        return int(self.suffix.removeprefix("-") or self.version.split(".")[0])

    def tool(self, role: Role, arch: Arch | None = None) -> str:
        tools = self.description.tools
        if role not in tools:
            raise InputError(f"{self.name} has no {role}")
        return self.placed(tools[role].named(self.suffix))

    def placed(self, command: str) -> str:
        """The program of a command: in PATH by its name, in a directory by its path."""
        return named(command) if self.directory is None else str(self.directory / command)

    def flags(self, meaning: Meaning, **values: object) -> tuple[str, ...]:
        flags = self.description.flags
        if meaning not in flags:
            raise InputError(f"{self.name} has no flags for `{meaning}`")
        return tuple(flag.format_map(values) for flag in flags[meaning])

    def relocate(self, profile: Path, output: Path, run: Run) -> tuple[str, ...] | None:
        return None

    def rust(self, flags: Sequence[str]) -> tuple[str, ...]:
        found, words = [], iter(flags)
        for word in words:
            if word == "-mllvm":
                found.append(f"-Cllvm-args={next(words)}")
            elif (renamed := self._in_rust(word)) is not None:
                found.append(renamed)
        return tuple(found)

    def _in_rust(self, word: str) -> str | None:
        """A flag as rustc calls it, also within make's conditions; None where rustc has none."""
        for ours, renamed in self.description.rust.items():
            value = "(?P<value>[^\\s,)]*)" if ours.endswith("=") else "(?P<value>)(?![-=\\w])"
            if found := re.search(rf"(?<![-=\w]){re.escape(ours)}{value}", word):
                new = renamed.format(value=found["value"])
                return word[: found.start()] + new + word[found.end() :]
        return None

    def identity(self, arch: Arch | None = None) -> dict[str, str]:
        tools = self.description.tools
        deciding = (role for role in _DECIDING if role in tools)
        return {tools[role].command: self._identified(role, arch) for role in deciding}

    def _identified(self, role: Role, arch: Arch | None) -> str:
        """Its version; of a tool that no package manager put there, who rebuilds it without a new
        version sees a new one nevertheless."""
        return identified(self.banner(role, arch), *self.programs_of(role, arch))

    def compiler_content(self, arch: Arch) -> str | None:
        # For this machine, too: a build has programs of its own.
        both = (arch, None)
        programs = (each for one in both for each in self.programs_of("compiler", one))
        if not any(map(own_file, programs)):
            return None
        known = "\n".join(self._identified("compiler", one) for one in both)
        return hashlib.sha256(known.encode()).hexdigest()

    def programs_of(self, role: Role, arch: Arch | None) -> tuple[str, ...]:
        """What does the work of a tool: itself, and what it starts."""
        return (self.tool(role, arch),)

    def banner(self, role: Role, arch: Arch | None = None) -> str:
        tool = self.description.tools[role]
        return banner_of(self.tool(role, arch), self.remedy(role, arch), tool.version)

    def remedy(self, role: Role, arch: Arch | None) -> str | None:
        """The command that installs a tool that is missing."""
        tool = self.description.tools[role]
        if tool.optional and self.suffix:
            return f"apt-get install {tool.package_of(self.suffix)}"
        return self.description.remedy(self.suffix)

    def packages(self) -> tuple[str, ...]:
        if self.directory is not None:
            return ()
        tools = (self.description.tools[role] for role in _COMPILING)
        return tuple(dict.fromkeys(tool.package_of(self.suffix) for tool in tools))

    def files(self, arch: Arch | None = None) -> tuple[NeededFile, ...]:
        return ()

    @classmethod
    def installed(cls) -> tuple[Self, ...]:
        """Every supported version that has all its tools here, newest first."""
        described = cls.description
        versions = range(described.max_version, described.min_version - 1, -1)
        complete = tuple(one for one in (cls(f"-{n}") for n in versions) if one.is_complete())
        plain = cls("")
        if not complete and plain.is_complete() and plain.major >= described.min_version:
            complete = (plain,)
        return complete

    def here(self) -> Self:
        """The tools of this version: those without a version in their names where only they are
        complete, and are of it."""
        plain = type(self)("")
        if not self.is_complete() and plain.is_complete():
            with suppress(EnvironmentLack):  # it does not say which it is
                if f"-{plain.major}" == self.suffix:
                    return plain
        return self

    def is_complete(self) -> bool:
        """Whether all its tools are installed, except for optional ones."""
        return not self.missing()

    def missing(self) -> tuple[str, ...]:
        """The commands of those that are not."""
        needed = {role: tool for role, tool in self.description.tools.items() if not tool.optional}
        return tuple(
            tool.named(self.suffix) for role, tool in needed.items() if not find(self.tool(role))
        )

    def check(self) -> None:
        """Check that its tools are there, and that those which decide what a build makes are of one
        version.

        Raises:
            EnvironmentLack: otherwise.
        """
        for role, tool in self.description.tools.items():
            if tool.optional:
                continue
            # Before the version of a compiler may stand that of who packaged it.
            says = self.version if role == "compiler" else self.banner(role)
            found = NUMBER.search(says)
            decides = tool.versioned and role in _DECIDING
            if decides and found and int(found.group().split(".")[0]) != self.major:
                raise EnvironmentLack(
                    f"{find(self.tool(role))} is of version {found.group()}, and "
                    f"{find(self.tool('compiler'))} of {self.version}",
                    f"name the directory that has both: `set toolchain {self.family}:DIRECTORY`",
                )


T = TypeVar("T", bound=Versioned)


@dataclass(frozen=True)
class Versions(Generic[T]):
    """All versions of a toolchain."""

    toolchain: type[T]

    @property
    def capabilities(self) -> Mapping[str, int]:
        return self.toolchain.description.capabilities

    def capabilities_of(self, version: str) -> frozenset[str]:
        return self.toolchain.description.capabilities_of(int(version))

    @property
    def exclusive(self) -> frozenset[str]:
        return self.toolchain.description.exclusive

    def versions(self) -> tuple[str, ...]:
        described = self.toolchain.description
        return tuple(map(str, range(described.max_version, described.min_version - 1, -1)))

    def at(self, directory: Path) -> T:
        chosen = self._in(directory)
        if directory.is_file():
            remedy = f"name its directory: `set toolchain {chosen.family}:{directory.parent}`"
            raise InputError(f"{directory} is a file", remedy)
        if not directory.exists():
            # As in CROSS_COMPILE, what the names of its programs begin with.
            programs = any(directory.parent.glob(f"{directory.name}*"))
            near = f"set toolchain {chosen.family}:{directory.parent}" if programs else None
            raise EnvironmentLack(f"{directory} does not exist", near)
        if _BLANK.search(str(chosen.directory)):
            raise InputError(
                f"the path of the toolchain has a blank, which kbuild cannot use: {directory}",
                "name a link to it, by a path without blanks",
            )
        if missing := chosen.missing():
            raise EnvironmentLack(
                f"{chosen.directory} does not have {', '.join(missing)}", self._nearest(directory)
            )
        chosen.check()
        if chosen.major < chosen.description.min_version:
            raise EnvironmentLack(
                f"{chosen.tool('compiler')} is of version {chosen.version}",
                f"use version {chosen.description.min_version} or newer",
            )
        return chosen

    def _in(self, directory: Path) -> T:
        inside = directory / "bin"
        return self.toolchain("", directory=inside if inside.is_dir() else directory)

    def _nearest(self, directory: Path) -> str:
        """What to name instead of a directory without the tools."""
        below = sorted({path for each in _BELOW for path in directory.glob(each)}, reverse=True)
        if found := [path for path in below if path.is_dir() and not self._in(path).missing()]:
            return f"name {' or '.join(map(str, found[:_MAX_NAMED]))}"
        chosen, tool = self._in(directory), self.toolchain.description.tools["compiler"].command
        inside = chosen.directory or directory
        versioned = sorted(
            inside.glob(f"{tool}-[1-9]*"),
            key=lambda path: list(map(int, re.findall(r"\d+", path.name))),
        )
        for path in (inside / tool, *reversed(versioned)):
            if is_launched(path):
                real = find(path.name)
                behind = Path(real).resolve().parent if real else "DIRECTORY"
                return (
                    f"{path.name} there is a link to {path.resolve()}, which starts another one: "
                    f"name the directory of that, as in {chosen.family}:{behind}"
                )
        if versioned and tool in chosen.missing():
            return f"names without a version are needed: link {tool} to {versioned[-1].name} there"
        title = self.toolchain.description.title
        return f"name a directory with all of {title}'s tools, or one whose `bin` has them"

    def select(self, version: str | None) -> T:
        if version is not None:
            known, family = self.versions(), self.toolchain.family
            if version not in known:
                remedy = f"known: {family}-{known[-1]} to {family}-{known[0]}"
                if not version.isdecimal():
                    remedy += f"; or name a directory: `set toolchain {family}:DIRECTORY`"
                raise InputError(f"unknown toolchain `{family}-{version}`", remedy)
            chosen = self.toolchain(f"-{version}").here()
            chosen.check()
            return chosen
        found = self.toolchain.installed()
        if not found:
            described = self.toolchain.description
            raise EnvironmentLack(
                f"no {described.title} of version {described.min_version} or newer "
                "is installed with all its tools",
                "run `make setup`",
            )
        found[0].check()
        return found[0]

    def programs(self) -> tuple[Program, ...]:
        described, suffix = self.toolchain.description, self.suffix()
        return tuple(
            Program(
                tool.named(suffix or ""),
                tool.purpose,
                (described.min_version,) if tool.versioned else (),
                tool.package_of(suffix) if suffix else None,
                tool.optional,
                tool.version,
            )
            for tool in described.tools.values()
        )

    def files(self) -> tuple[NeededFile, ...]:
        suffix = self.suffix()
        found = self.toolchain(suffix or "").files()
        return tuple(found if suffix else (replace(file, package=None) for file in found))

    def suffix(self) -> str | None:
        """What the names of the tools end in (``-22``, or nothing): the newest complete version,
        otherwise that of the newest compiler; None without any compiler."""
        toolchains = [self.toolchain(s) for s in (*(f"-{v}" for v in self.versions()), "")]
        complete = (each.suffix for each in toolchains if each.is_complete())
        compilers = (each.suffix for each in toolchains if find(each.tool("compiler")))
        return next(complete, next(compilers, None))
