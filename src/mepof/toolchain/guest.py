"""The compilers of a guest's programs, and what decides the bytes that they produce."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof import arch
from mepof.arch import Guest
from mepof.errors import EnvironmentLack, InputError
from mepof.process import find_tool, of_machine, run, version_line


def target(name: str) -> Guest:
    """What builds the guest programs of an architecture.

    Args:
        name: the architecture's G4 name.

    Raises:
        InputError: mepof has no guest for it.
    """
    found = arch.get(name).guest
    if found is None:
        known = ", ".join(each.name for each in arch.records() if each.guest is not None)
        raise InputError(f"no guest programs for {name} yet", f"known: {known}")
    return found


@of_machine
@cache
def identity(guest: Guest) -> dict[str, str]:
    """What decides the bytes of a guest's programs, beside the sources.

    Raises:
        EnvironmentLack: the compiler or its C library is missing.
    """
    compiler = find_tool(guest.compiler, guest.remedy)
    digests = (sha256(path.read_bytes()).hexdigest() for path in c_libraries(guest))
    return {
        "guest compiler": version_line(compiler),
        "guest libc": " ".join(digests) or "unknown",
    }


@of_machine
@cache
def library_identity(guest: Guest, names: tuple[str, ...]) -> dict[str, str]:
    """What decides the bytes of programs with these static libraries (``sqlite3``).

    Raises:
        EnvironmentLack: the compiler, its C library or one of them is missing.
    """
    compiler = find_tool(guest.library_compiler, guest.library_remedy)
    found = {"library compiler": version_line(compiler)}
    for name in ("c", *names):
        file = f"lib{name}.a"
        path = _ask_path(guest.library_compiler, file)
        if path is None:
            install = guest.library_install.format(name=name)
            remedy = guest.library_remedy if name == "c" else install
            raise EnvironmentLack(f"{guest.library_compiler} cannot find {file}", remedy)
        found[file] = sha256(path.read_bytes()).hexdigest()
    return found


def c_libraries(guest: Guest) -> list[Path]:
    """The static C libraries of a guest's compiler.

    Raises:
        EnvironmentLack: the compiler has none.
    """
    if guest.libc is not None:
        return sorted(Path("/").glob(guest.libc))
    path = _ask_path(guest.compiler, "libc.a")
    if path is None:
        raise EnvironmentLack(f"{guest.compiler} has no static C library", guest.remedy)
    return [path]


def _ask_path(compiler: str, library: str) -> Path | None:
    """Where a compiler finds a static library; it prints the bare name if it does not."""
    printed = Path(run([compiler, f"-print-file-name={library}"]).output.strip())
    return printed if printed.is_absolute() else None
