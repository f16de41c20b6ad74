"""What has to be on the disk before something else happens, and what can be written to it."""

from __future__ import annotations

import errno
import os
from pathlib import Path


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
