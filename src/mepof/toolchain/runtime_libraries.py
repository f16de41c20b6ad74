"""The shared libraries that programs of a guest's compiler need at run time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from mepof.errors import EnvironmentLack
from mepof.process import run
from mepof.toolchain.shared_libraries import named_in

# glibc loads it when a thread is cancelled or exits.
_LOADED = "libgcc_s.so.1"


def runtime_libraries(compiler: str, programs: Iterable[Path]) -> dict[str, Path]:
    """The files that programs need, by where the dynamic linker looks for them in a guest.

    A library beside a program is part of the programs, and not in the result.

    Args:
        programs: ELF files; what is not ELF is skipped.

    Raises:
        EnvironmentLack: the compiler does not have one of them.
    """
    found: dict[str, Path] = {}
    given = [*programs]
    pending = [
        (path, name)
        for path in given
        for name in _named(path)
        if name.startswith("/") or not (path.parent / name).is_file()
    ]
    if pending:
        pending.append((pending[0][0], _LOADED))
    while pending:
        by, name = pending.pop()
        # An interpreter is named by its path, a library by the name in the default directories.
        into = name.lstrip("/") if name.startswith("/") else f"lib/{name}"
        if into in found:
            continue
        path = _ask(compiler, Path(name).name)
        if path is None:
            raise EnvironmentLack(
                f"{by.name} needs {name}, which {compiler} does not have",
                "install the library's package for the guest's architecture",
            )
        found[into] = path
        pending += [(path, each) for each in _named(path)]
    return found


def library(compiler: str, name: str) -> Path | None:
    """What a compiler links programs with for a library (``cap``); None if it has none."""
    paths = (_ask(compiler, f"lib{name}.{suffix}") for suffix in ("so", "a"))
    return next((path for path in paths if path is not None), None)


def _named(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return named_in(ELFFile(file))
    except ELFError:
        return []


def _ask(compiler: str, file: str) -> Path | None:
    """Where a compiler finds a file; it prints the bare name if it does not."""
    printed = Path(run([compiler, f"-print-file-name={file}"]).output.strip())
    return printed.resolve() if printed.is_absolute() else None
