"""What makes the programs of a guest, for each architecture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.errors import EnvironmentLack, InputError
from mepof.process import find_tool, run, version_line


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
        library_compiler: makes static programs with a distribution's static libraries, which
            are made for glibc.
        library_remedy: what installs that with its C library.
        library_install: what installs the library of that name.
    """

    compiler: str
    remedy: str
    libraries: str | None
    shell: bool
    library_compiler: str
    library_remedy: str
    library_install: str


_TARGETS = {
    "x86-64": Target(
        "musl-gcc",
        "apt-get install musl-tools",
        "usr/lib/*-linux-musl/libc.a",
        shell=True,
        library_compiler="gcc",
        library_remedy="apt-get install gcc libc6-dev",
        library_install="apt-get install lib{name}-dev",
    ),
    # Debian's cross compiler brings glibc, so that apt need not learn of another architecture but
    # for further libraries.
    "arm64": Target(
        "aarch64-linux-gnu-gcc",
        "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        None,
        shell=False,
        library_compiler="aarch64-linux-gnu-gcc",
        library_remedy="apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        library_install="dpkg --add-architecture arm64 && apt-get update && "
        "apt-get install lib{name}-dev:arm64",
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
        "guest compiler": version_line(compiler),
        "guest libc": " ".join(sha256(path.read_bytes()).hexdigest() for path in _libraries(made))
        or "unknown",
    }


@cache
def library_identity(made: Target, names: tuple[str, ...]) -> dict[str, str]:
    """What decides the bytes of programs with these static libraries (``sqlite3``).

    Raises:
        EnvironmentLack: the compiler, its C library or one of them is missing.
    """
    compiler = find_tool(made.library_compiler, made.library_remedy)
    found = {"library compiler": version_line(compiler)}
    for name in ("c", *names):
        file = f"lib{name}.a"
        path = _asked(made.library_compiler, file)
        if path is None:
            install = made.library_install.format(name=name)
            remedy = made.library_remedy if name == "c" else install
            raise EnvironmentLack(f"{made.library_compiler} finds no {file}", remedy)
        found[file] = sha256(path.read_bytes()).hexdigest()
    return found


def _libraries(made: Target) -> list[Path]:
    if made.libraries is not None:
        return sorted(Path("/").glob(made.libraries))
    said = _asked(made.compiler, "libc.a")
    if said is None:
        raise EnvironmentLack(f"{made.compiler} has no static C library", made.remedy)
    return [said]


def _asked(compiler: str, library: str) -> Path | None:
    """Where a compiler finds a static library: it says but the name where it does not."""
    said = Path(run([compiler, f"-print-file-name={library}"]).output.strip())
    return said if said.is_absolute() else None
