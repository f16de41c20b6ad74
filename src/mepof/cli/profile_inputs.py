"""Files that ``mepof profile`` is given: whether they are there, and are what they should be."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from mepof.errors import InputError
from mepof.profile.traces import traces_of


def traces_in(given: Iterable[Path]) -> list[Path]:
    """Branch traces, and those in directories.

    Raises:
        InputError: a directory has none.
    """
    found: list[Path] = []
    for path in given:
        metadata = ("metadata", "*/metadata") if path.is_dir() else ()
        if any(next(path.glob(each), None) for each in metadata):
            raise InputError(
                f"{path} is a trace of LTTng (CTF), which has no branches",
                "record with `perf record -b`",
            )
        found += traces_of(path)
    return found


def check_files(output: Path, inputs: list[Path], *others: Path | None) -> None:
    """Refuse to count an input twice, and to write over what is read.

    Args:
        others: what is read besides.

    Raises:
        InputError: the output is a file that is read, or an input is the same file as another one.
    """
    named: dict[tuple[int, int], Path] = {}
    for path in inputs:
        if (file := _regular_file(path)) and named.setdefault(file, path) is not path:
            raise InputError(f"{path} is given twice", "name each input once")
    read = {_regular_file(path) for path in (*inputs, *others) if path is not None} - {None}
    if _regular_file(output) in read:
        raise InputError(f"{output} would be overwritten", "name another file: -o OUT")


def _regular_file(path: Path) -> tuple[int, int] | None:
    """Device and inode of a regular file; None for what is something else or cannot be read."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # said where it is read
        return None
    return (status.st_dev, status.st_ino) if S_ISREG(status.st_mode) else None


def check_there(path: Path, remedy: str) -> None:
    """Refuse a file that does not exist.

    Args:
        remedy: what to name instead.

    Raises:
        InputError: it does not.
    """
    with suppress(OSError):  # the engine says what else is wrong
        if not path.exists():
            raise InputError(f"{path}: no such file", remedy)
