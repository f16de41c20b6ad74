"""Clang and the LLVM tools; what ``clang.toml`` cannot say about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.arch import Arch
from mepof.errors import MepofError
from mepof.process import of_machine, run
from mepof.toolchain.profile_names import current
from mepof.toolchain.programs import own_file
from mepof.toolchain.protocol import FunctionCount, NeededFile, ProfileKind, Role, Run
from mepof.toolchain.versions import Versioned, Versions, read_description

# A compiler that has not answered by then is broken.
_ANSWER_SECONDS = 20.0
# What may precede the name of a function: a static one is counted under the name of its file and
# its own.
_PREFIX = {"counts": r"(.*[;:])?", "samples": ""}
_KIND = {"counts": "--instr", "samples": "--sample"}
# Since then, the merger is known to leave functions out by itself; that of 16 does not.
_LEAVES_OUT = 19
# Of a profile of counts as text: the lines before the first function, without the traces of which
# function ran when, and a count that is not 0.
_HEAD = re.compile(r"((?!:temporal_prof_traces)[#:].*\n)*")
# How many directories the objects' path of the tree has in make's words; none for the tree itself.
_LEVELS = "$(words $(subst /,/ ,$(patsubst ./,,$(srctree)/)))"
# The command that compiles, as the driver prints it.
_COMPILES = re.compile(r'^ *"([^"]+)" "-cc1"', re.M)
_COUNTED = re.compile(r"^# Counter Values:\n(0\n)*[1-9]", re.M)


@dataclass(frozen=True)
class Clang(Versioned):
    """Clang of one version."""

    family = "clang"
    description = read_description(Path(__file__).with_suffix(".toml"))

    def program(self, name: str) -> str:
        """Another of LLVM's programs, such as ``llvm-mc``."""
        return self.placed(name + self.suffix)

    def programs_of(self, role: Role, arch: Arch | None) -> tuple[str, ...]:
        found = super().programs_of(role, arch)
        if role != "compiler" or (driver := own_file(found[0])) is None:
            return found
        return (*found, *(each for each in _compiling(found[0]) if own_file(each) != driver))

    def make_variables(self, arch: Arch) -> dict[str, str]:
        # The suffix means something from Linux 5.18 on, the architecture decides the target from
        # 5.15 on, and the assembler is Clang's own by default. Earlier kernels are told everything.
        compiler = self.tool("compiler")
        target = "" if arch.is_native else f" --target={arch.triple}"
        return {
            "LLVM": f"{self.directory}/" if self.directory else self.suffix or "1",
            "LLVM_IAS": "1",
            "CC": compiler + target,
            "LD": self.tool("linker", arch),
            "AR": self.tool("archiver", arch),
            "NM": self.tool("nm", arch),
            "OBJCOPY": self.tool("objcopy", arch),
            "OBJDUMP": self.program("llvm-objdump"),
            "READELF": self.program("llvm-readelf"),
            "STRIP": self.program("llvm-strip"),
            "HOSTCC": compiler,
            "HOSTAR": self.tool("archiver"),
            "HOSTLD": self.tool("linker"),
        }

    def kconfig_environment(self, arch: Arch) -> dict[str, str]:
        compiler = self.tool("compiler", arch)
        return {
            "CC": compiler,
            "HOSTCC": compiler,
            "HOSTCXX": compiler,
            "LD": self.tool("linker", arch),
            "AR": self.tool("archiver", arch),
            "NM": self.tool("nm", arch),
            "OBJCOPY": self.tool("objcopy", arch),
            "CC_VERSION_TEXT": self.banner("compiler"),
            "CLANG_FLAGS": f"--target={arch.triple} -fintegrated-as",
        }

    def files(self, arch: Arch | None = None) -> tuple[NeededFile, ...]:
        """The compiler's own description of its raw profiles, which the overlay ``pgo`` takes."""
        path, package = None, f"libclang-common{self.suffix}-dev"
        with suppress(MepofError):
            path = self.resource_directory() / "include/profile/InstrProfData.inc"
        return (NeededFile("InstrProfData.inc", "the layout of profiles", None, path, package),)

    def resource_directory(self) -> Path:
        command = [self.tool("compiler"), "-print-resource-dir"]
        return Path(run(command, timeout=_ANSWER_SECONDS).output.strip())

    def merge_profiles(
        self, weighted: Sequence[tuple[Path, int]], output: Path, run: Run
    ) -> FunctionCount:
        merger = self.tool("profile-merger")
        inputs = [f"--weighted-input={weight},{path}" for path, weight in weighted]
        run([merger, "merge", "--num-threads=1", f"--output={output}", *inputs])
        show = [merger, "show", "--value-cutoff=1", output]
        counted = count_functions(run(show).output)
        # Counts in context are shown apart from the others; without them, they are what there is.
        return counted if counted.known else count_functions(run([*show, "--showcs"]).output)

    def executed(self, profile: Path, run: Run) -> frozenset[str]:
        _, functions = self._as_text(profile, run)
        executed = filter(_COUNTED.search, functions)
        return frozenset(current(each.strip().partition("\n")[0]) for each in executed)

    def drop_unexecuted(self, profile: Path, output: Path, run: Run) -> None:
        head, functions = self._as_text(profile, run)
        self._write_text(head, filter(_COUNTED.search, functions), output, run)

    def _write_text(self, head: str, functions: Iterable[str], output: Path, run: Run) -> None:
        with TemporaryDirectory() as scratch:
            text = Path(scratch) / "text"
            text.write_text(head + "".join(f"{each}\n\n" for each in functions))
            run([self.tool("profile-merger"), "merge", "--num-threads=1", text, "-o", output])

    def _as_text(self, profile: Path, run: Run) -> tuple[str, list[str]]:
        """A profile of counts as text: the lines before the first function, and the functions."""
        with TemporaryDirectory() as scratch:
            text = Path(scratch) / "text"
            run([self.tool("profile-merger"), "merge", "--text", profile, "-o", text])
            whole = text.read_text(encoding="utf-8")
        head = _HEAD.match(whole)
        start = head.end() if head else 0
        return whole[:start], [each for each in whole[start:].split("\n\n") if each.strip()]

    def relocate(self, profile: Path, output: Path, run: Run) -> tuple[str, ...]:
        head, functions = self._as_text(profile, run)
        # Lines of values name functions as well.
        named = (re.sub(r"^\.\./", "", each, flags=re.M) for each in functions)
        self._write_text(head, named, output, run)
        return self.flags("counts-from-root", levels=_LEVELS)

    def drop_functions(
        self,
        kind: ProfileKind,
        functions: Collection[str],
        profile: Path,
        output: Path,
        run: Run,
    ) -> None:
        names = "|".join(map(re.escape, functions))
        pattern = f"{_PREFIX[kind]}({names})"
        if kind == "counts" and self.major < _LEAVES_OUT:
            head, counted = self._as_text(profile, run)
            kept = [each for each in counted if not re.match(rf"\s*{pattern}\n", each)]
            self._write_text(head, kept, output, run)
            return
        dropped = f"--no-function=^{pattern}$"
        merger = self.tool("profile-merger")
        run([merger, "merge", _KIND[kind], dropped, profile, "-o", output])


@of_machine
@cache
def _compiling(driver: str) -> tuple[str, ...]:
    """The program that compiles. A driver may be a script that starts it, as Android's is."""
    command = [driver, "-###", "-fsyntax-only", "-x", "c", "/dev/null"]
    return tuple(_COMPILES.findall(run(command, timeout=_ANSWER_SECONDS, check=False).output))


def count_functions(shown: str) -> FunctionCount:
    """Read ``llvm-profdata show --value-cutoff=1``: it counts the functions with any count."""
    total = _number(r"^Total functions: (\d+)", shown)
    below = _number(r"^Number of functions with maximum count \(< 1\): (\d+)", shown)
    return FunctionCount(total, total - below)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.M)
    return int(found.group(1)) if found else 0


TOOLCHAIN = Versions(Clang)
