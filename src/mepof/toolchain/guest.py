"""What makes the programs of a guest, for each architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.errors import EnvironmentLack, InputError
from mepof.process import find_tool, run


@dataclass(frozen=True)
class Target:
    """How the guest programs of one architecture are made.

    Attributes:
        compiler: makes static programs.
        remedy: what installs it with its C library.
        libraries: where that library lies, as a pattern below ``/``; without one the
            compiler is asked. musl's wrapper would name the C library of its gcc.
        shell: whether the guest has BusyBox. Debian's package for another architecture
            cannot be installed beside ours.
    """

    compiler: str
    remedy: str
    libraries: str | None
    shell: bool


_TARGETS = {
    "x86-64": Target(
        "musl-gcc", "apt-get install musl-tools", "usr/lib/*-linux-musl/libc.a", shell=True
    ),
    # Debian's cross compiler brings glibc, so that apt need not learn of another architecture.
    "arm64": Target(
        "aarch64-linux-gnu-gcc",
        "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        None,
        shell=False,
    ),
}


def target(arch: str) -> Target:
    """The target of an architecture's G4 name.

    Raises:
        InputError: there is none.
    """
    if arch not in _TARGETS:
        raise InputError(f"no guest programs for {arch} yet", "known: " + ", ".join(_TARGETS))
    return _TARGETS[arch]


@cache
def identity(made: Target) -> dict[str, str]:
    """What decides the bytes that come out, beside the sources.

    Raises:
        EnvironmentLack: the compiler or its C library is missing.
    """
    compiler = find_tool(made.compiler, made.remedy)
    return {
        "guest compiler": run([compiler, "--version"]).output.splitlines()[0],
        "guest libc": " ".join(sha256(path.read_bytes()).hexdigest() for path in _libraries(made))
        or "unknown",
    }


def _libraries(made: Target) -> list[Path]:
    if made.libraries is not None:
        return sorted(Path("/").glob(made.libraries))
    said = Path(run([made.compiler, "-print-file-name=libc.a"]).output.strip())
    if not said.is_absolute():
        raise EnvironmentLack(f"{made.compiler} has no static C library", made.remedy)
    return [said]
