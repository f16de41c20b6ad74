"""GCC and the GNU binutils; what ``gcc.toml`` cannot say about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from mepof.arch import Arch
from mepof.errors import EnvironmentLack, InputError, MepofError
from mepof.process import find_tool, run, version_line
from mepof.toolchain import gcda
from mepof.toolchain.programs import banner_of, find, named, own_file
from mepof.toolchain.protocol import FunctionCount, NeededFile, ProfileKind, Role, Run
from mepof.toolchain.versions import Versioned, Versions, read_description

# The parentheses hold who packaged it.
_VERSION = re.compile(r"\) (\d+\.\d+\.\d+)\b")
# What compilers are for, in their names. Code of kernels needs nothing of a system, so those for
# machines without one do as well.
_SYSTEMS = ("linux", "elf", "eabi")


@dataclass(frozen=True)
class Gcc(Versioned):
    """GCC of one version."""

    family = "gcc"
    description = read_description(Path(__file__).with_suffix(".toml"))

    def version_for(self, arch: Arch | None) -> str:
        # "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc (GCC) 13.2.1 20230801 (Red Hat 13.2.1-1)"
        found = _VERSION.search(self.banner("compiler", arch))
        if found is None:
            compiler = self.tool("compiler", arch)
            raise EnvironmentLack(f"{compiler} does not report its version", "run `mepof doctor`")
        return found.group(1)

    def tool(self, role: Role, arch: Arch | None = None) -> str:
        command = self.description.tools[role].named(self.suffix)
        if (inside := self._inside(command, arch)) is not None:
            return inside
        # That of the system would be another compiler than the one that was named.
        if role == "compiler" and arch is not None and (others := self._compilers()):
            has = ", ".join(Path(each).name for each in others)
            raise EnvironmentLack(
                f"{self.name} has no compiler for {arch.name}",
                f"it has {has}: correct `set arch`, or name another directory",
            )
        return named(_prefix(arch) + command)

    def _inside(self, command: str, arch: Arch | None) -> str | None:
        """A program of the directory; one with a compiler alone leaves the others to the system."""
        if self.directory is None:
            return None
        found = [str(self.directory / command)] if arch is None or arch.is_native else []
        if arch is not None:
            found += self._crossing(command, f"{arch.cpu}[-v]")
        return next(filter(find, found), None)

    def _crossing(self, command: str, machine: str) -> list[str]:
        """Those of the directory whose names begin with a machine: in aarch64-none-linux-gnu-gcc,
        who builds a toolchain is named as well, and in armv7a-linux-gnueabi-gcc, the version."""
        assert self.directory is not None
        found = (
            str(path)
            for system in _SYSTEMS
            for path in sorted(self.directory.glob(f"{machine}*{system}*-{command}"))
            if not path.name.endswith(f"-gcc-{command}")  # which runs the one that is meant
        )
        return list(dict.fromkeys(found))

    def missing(self) -> tuple[str, ...]:
        if self.directory is None:
            return super().missing()
        # The system may have the others.
        return () if self._compilers() else (self.description.tools["compiler"].command,)

    def check(self) -> None:
        compiler = self.tool("compiler")
        if self.directory is not None and not find(compiler):
            raise EnvironmentLack(
                f"{compiler} is not installed, which compiles the programs that a build runs: "
                f"{self.directory} has none for this machine",
                "apt-get install gcc binutils",
            )
        super().check()

    def _compilers(self) -> list[str]:
        """Those in the directory: for this machine, and for others."""
        if self.directory is None:
            return []
        command = self.description.tools["compiler"].command
        inside = [str(self.directory / command), *self._crossing(command, "*-")]
        return list(filter(find, inside))

    def programs_of(self, role: Role, arch: Arch | None) -> tuple[str, ...]:
        if role != "compiler":
            return super().programs_of(role, arch)
        whole = self.directory is not None and arch is None
        found = self._compilers() if whole else [self.tool(role, arch)]
        # The driver only starts these. That of the system starts the system's.
        started = [
            run([driver, f"-print-prog-name={name}"]).output.strip()
            for driver in found
            if own_file(driver) is not None
            for name in (("cc1",) if arch is None else ("cc1", "as"))
        ]
        return (*found, *started)

    def banner(self, role: Role, arch: Arch | None = None) -> str:
        if role != "compiler" or self.directory is None or arch is not None:
            return super().banner(role, arch)
        return banner_of(next(iter(self._compilers()), self.tool(role)), None)

    def remedy(self, role: Role, arch: Arch | None) -> str | None:
        if arch is None or arch.is_native:
            return super().remedy(role, arch)
        packages = (f"gcc{self.suffix}", "binutils")
        return "apt-get install " + " ".join(each + _package_suffix(arch) for each in packages)

    def make_variables(self, arch: Arch) -> dict[str, str]:
        # Binutils may have the name of the machine where the compiler has none.
        beside = self._inside("objcopy", arch)
        return {
            "CROSS_COMPILE": beside.removesuffix("objcopy") if beside else _prefix(arch),
            "CC": self.tool("compiler", arch),
            "HOSTCC": self.tool("compiler"),
            "LD": self.tool("linker", arch),
        }

    def kconfig_environment(self, arch: Arch) -> dict[str, str]:
        compiler = self.tool("compiler", arch)
        return {
            "CC": compiler,
            "HOSTCC": self.tool("compiler"),
            "HOSTCXX": "g++",
            "LD": self.tool("linker", arch),
            "AR": self.tool("archiver", arch),
            "NM": self.tool("nm", arch),
            "OBJCOPY": self.tool("objcopy", arch),
            "CC_VERSION_TEXT": version_line(find_tool(compiler, self.remedy("compiler", arch))),
            "CLANG_FLAGS": "",
        }

    def files(self, arch: Arch | None = None) -> tuple[NeededFile, ...]:
        """What the plug-in of the overlay ``gcov`` is built with."""
        path, compiler = None, which("g++")
        with suppress(MepofError):
            asked = run([self.tool("compiler", arch), "-print-file-name=plugin"])
            path = Path(asked.output.strip()) / "include/gcc-plugin.h"
        package = f"gcc{self.suffix}-plugin-dev{_package_suffix(arch)}"
        purpose, needs = "counting kernels of gcc-pgo", "gcc-instrumentation"
        return (
            NeededFile("gcc-plugin.h", purpose, needs, path, package),
            NeededFile("g++", purpose, needs, Path(compiler) if compiler else None, "g++"),
        )

    def resource_directory(self) -> None:
        return None

    def merge_profiles(
        self, weighted: Sequence[tuple[Path, int]], output: Path, run: Run
    ) -> FunctionCount:
        total = gcda.add([(gcda.read_archive(path), weight) for path, weight in weighted])
        gcda.write_archive(total, output)
        return FunctionCount(
            sum(len(counts.functions) for counts in total.values()),
            sum(counts.executed for counts in total.values()),
        )

    def executed(self, profile: Path, run: Run) -> frozenset[str]:
        # Counts have the checksum of a function's name, and objects have their source's.
        return frozenset(
            f"../{name.removesuffix('.o')}.c;{function.key[0]:08x}"
            for name, counts in gcda.read_archive(profile).items()
            for function in counts.functions
            if function.executed
        )

    def drop_unexecuted(self, profile: Path, output: Path, run: Run) -> None:
        archive = gcda.read_archive(profile)
        gcda.write_archive({name: c for name, c in archive.items() if c.executed}, output)

    def drop_functions(
        self,
        kind: ProfileKind,
        functions: Collection[str],
        profile: Path,
        output: Path,
        run: Run,
    ) -> None:
        raise InputError(
            f"{self.name} cannot leave single functions out of a profile",
            "leave out their files: set exclude",
        )


def _prefix(arch: Arch | None) -> str:
    """What the names of tools for an architecture begin with: nothing for this machine's own."""
    return "" if arch is None or arch.is_native else arch.cross_prefix


def _package_suffix(arch: Arch | None) -> str:
    """What the names of Debian's packages with such tools end in."""
    if arch is None or arch.is_native:
        return ""
    return f"-{arch.triple.replace('_', '-')}"


TOOLCHAIN = Versions(Gcc)
