"""What is on the disk, what has to be before something else happens, and what can be written to
it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def existing(text: str) -> Path | None:
    """The file or directory that a text names as a whole; a name that is too long names none."""
    path = Path(text)
    try:
        return path if path.exists() else None
    except OSError:
        return None


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk.

    Raises:
        OSError: it cannot be read, or the disk failed.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, beside ``path``, which replaces it if the block ends without an error.

    Whatever happens, ``path`` is the old file or the complete new one, which is on the disk
    before it has the name.

    Raises:
        OSError: it cannot be written.
    """
    # Processes and threads that write the same file at once do not share it.
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield partial
        sync(partial)
        partial.replace(path)
    finally:
        with suppress(OSError):  # it was renamed, or nothing can be written there
            partial.unlink()


def why_unwritable(directory: Path) -> str | None:
    """Why a directory, or one that would be made there, cannot be written; None if it can.

    Nothing is written.
    """
    try:
        existing = next(path for path in (directory, *directory.parents) if path.exists())
        if not existing.is_dir():
            return os.strerror(errno.ENOTDIR)
        if not os.access(existing, os.W_OK | os.X_OK):
            return os.strerror(errno.EACCES)
    except OSError as error:  # a directory above it is closed
        return error.strerror or str(error)
    return None
