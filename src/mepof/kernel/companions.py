"""Programs beside the compiler that only some kernels need: for BTF and for code in Rust.

Kconfig asks for their versions in any case and writes them into every configuration. Kernels that
do not need them are built as if they were not installed, so that they do not depend on it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from mepof.errors import EnvironmentLack
from mepof.kernel.kconfig import Fragments, may_have
from mepof.process import run
from mepof.toolchain.programs import banner_of, identified

_NONE = "not-installed"


@dataclass(frozen=True)
class Companions:
    """The programs that an option needs.

    Attributes:
        symbol: the option, without ``CONFIG_``.
        programs: kbuild's variables, and the programs that they name by default.
        remedy: how to install them.
    """

    symbol: str
    programs: Mapping[str, str]
    remedy: str

    def missing(self) -> list[str]:
        """Those of the programs that are not installed."""
        return [name for name in self.programs.values() if shutil.which(name) is None]

    def broken(self) -> Iterator[EnvironmentLack]:
        """Why those that are installed do not run, such as rustup's ``rustc`` without a
        toolchain."""
        for name in self.programs.values():
            try:
                if shutil.which(name) is not None:
                    banner_of(name, None)
            except EnvironmentLack as error:
                yield error


_BTF = Companions("DEBUG_INFO_BTF", {"PAHOLE": "pahole"}, "apt-get install pahole")
_RUST = Companions(
    "RUST",
    {"RUSTC": "rustc", "BINDGEN": "bindgen"},
    "install rustc with the sources of its library, and bindgen: `apt-get install rustc-web "
    "rust-web-src` and `cargo install --locked bindgen-cli`, or as "
    "Documentation/rust/quick-start.rst says",
)
_ALL = (_BTF, _RUST)


def variables(fragments: Fragments) -> dict[str, str]:
    """Kbuild's variables for the programs, which hide those that no option of a kernel needs."""
    return {
        variable: program if _needs(fragments, each) else _NONE
        for each in _ALL
        for variable, program in each.programs.items()
    }


def identity(fragments: Fragments) -> dict[str, str]:
    """The versions of the installed programs that a kernel may need. Those that are missing, or do
    not run, are an error if it does: for Kconfig, they are the same."""
    found = {}
    for each in _ALL:
        for program in each.programs.values() if _needs(fragments, each) else ():
            with suppress(EnvironmentLack):
                found[program] = identified(banner_of(program, None), program)
    return found


def lacking(wanted: Set[str]) -> Iterator[tuple[str, str]]:
    """What is not installed, or does not run, that the options of a configuration need, each with
    its remedy.

    Args:
        wanted: the lines of the configuration.
    """
    for each in _ALL:
        if f"CONFIG_{each.symbol}=y" not in wanted:
            continue
        for error in each.broken():
            yield f"CONFIG_{each.symbol}: {error.message}", error.remedy or each.remedy
        if missing := each.missing():
            are = "are" if len(missing) > 1 else "is"
            yield (
                f"CONFIG_{each.symbol} needs {' and '.join(missing)}, which {are} not installed",
                each.remedy,
            )


def unsuitable(wanted: Set[str], make: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Why a kernel cannot have code in Rust by the programs that are installed, with a remedy.

    Args:
        wanted: the lines of the configuration.
        make: the make command with all its variables, to which a target is added.
    """
    if "CONFIG_RUST=y" in wanted and not (_RUST.missing() or any(_RUST.broken())):
        output = run([*make, "rustavailable"], check=False).output
        if why := _complaint(output):
            yield f"CONFIG_RUST: {why}", _RUST.remedy


def _complaint(output: str) -> str:
    """The first paragraph of what the kernel's own check complains of, between lines of asterisks
    alone."""
    lines = re.findall(r"^\*\*\*(.*)$", output, re.M)
    paragraphs = "\n".join(map(str.strip, lines)).split("\n\n")
    return " ".join(paragraphs[0].split()).rstrip(".")


def _needs(fragments: Fragments, companions: Companions) -> bool:
    # By default no kernel has these options; a defconfig may.
    return may_have(companions.symbol, fragments, "allnoconfig", "alldefconfig")
