"""A toolchain that mepof does not come with, as another distribution would add it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof.arch import Arch
from mepof.toolchain.protocol import FunctionCount, ProfileKind, Run
from mepof.toolchain.versions import Versioned, Versions, read_description


@dataclass(frozen=True)
class Mcc(Versioned):
    """MCC of one version."""

    family = "mcc"
    description = read_description(Path(__file__).with_suffix(".toml"))

    def make_variables(self, arch: Arch) -> dict[str, str]:
        return {"MCC": self.suffix, "CROSS_COMPILE": arch.cross_prefix}

    def kconfig_environment(self, arch: Arch) -> dict[str, str]:
        return {"CC": self.tool("compiler", arch), "CC_VERSION_TEXT": self.banner("compiler")}

    def resource_directory(self) -> None:
        return None

    def merge_profiles(
        self, weighted: Sequence[tuple[Path, int]], output: Path, run: Run
    ) -> FunctionCount:
        run([self.tool("profile-merger"), *(f"{n}*{path}" for path, n in weighted), output])
        return FunctionCount(1000, 500)

    def executed(self, profile: Path, run: Run) -> frozenset[str]:
        return frozenset({"start"})

    def drop_unexecuted(self, profile: Path, output: Path, run: Run) -> None:
        run([self.tool("profile-merger"), "--executed", profile, output])

    def drop_functions(
        self,
        kind: ProfileKind,
        functions: Collection[str],
        profile: Path,
        output: Path,
        run: Run,
    ) -> None:
        run([self.tool("profile-merger"), f"--drop={','.join(functions)}", profile, output])


TOOLCHAIN = Versions(Mcc)
