"""LLVM's scheduling models of processors, which the emulated PMU reads."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mepof.errors import EnvironmentLack
from mepof.process import find_tool, of_machine, run
from mepof.toolchain import clang

# The emulated PMU needs the interface of this version.
MIN_VERSION = 22
HEADER = "llvm/MC/MCSchedule.h"


def suffix_for(compiler: str) -> str:
    """The suffix of the LLVM whose models are read beside a Clang with a suffix.

    It is Clang's own unless that is too old.
    """
    version = compiler.removeprefix("-")
    return f"-{MIN_VERSION}" if version.isdigit() and int(version) < MIN_VERSION else compiler


def suffix_here() -> str:
    """The suffix beside the Clang that is installed, if only in part."""
    return suffix_for(clang.TOOLCHAIN.suffix() or f"-{MIN_VERSION}")


@of_machine
@cache
def llvm_config() -> str:
    """The program that reports where the LLVM is whose models are read.

    Raises:
        EnvironmentLack: it or LLVM's headers are missing.
    """
    suffix = suffix_for(clang.TOOLCHAIN.select(None).suffix)
    remedy = f"apt-get install llvm{suffix}-dev"
    program = find_tool(f"llvm-config{suffix}", remedy)
    headers = Path(run([program, "--includedir"]).output.strip())
    if not (headers / HEADER).is_file():
        raise EnvironmentLack(f"the headers of LLVM{suffix} are not installed", remedy)
    return program
