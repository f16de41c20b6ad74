"""Detects a full disk behind a failure, and names the file system."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from mepof.errors import StoreFull

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MESSAGES = tuple(os.strerror(number) for number in _FULL)
# A compiler that runs out of space deletes its partial output, so some space is free again
# when we look.
_MAX_FREE_BYTES = 64 << 20
_TAIL_BYTES = 8192


def free_bytes(path: Path) -> int:
    """Bytes that are still available to us on the file system of ``path``."""
    status = os.statvfs(_existing(path))
    return status.f_bavail * status.f_frsize


def store_full(*paths: Path) -> StoreFull:
    """The error for the fullest of the file systems of these paths."""
    path = min(paths, key=free_bytes)
    mount = _existing(path.absolute())
    while not mount.is_mount():
        mount = mount.parent
    return StoreFull(
        f"no space left for {path}: the file system at {mount} has"
        f" {free_bytes(path) / (1 << 20):.1f} MiB free",
        "free some space there, or use a store on another file system, and run again:"
        " finished steps are kept",
    )


def means_full(error: BaseException) -> bool:
    """Whether an error or its cause is a full disk or an exceeded quota."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, StoreFull) or (isinstance(link, OSError) and link.errno in _FULL):
            return True
        link = link.__cause__ or link.__context__
    return False


def child_ran_out(log: Path, *paths: Path) -> bool:
    """Whether the log of a failed program ends with a full disk, and a disk of ``paths`` is full.

    The log alone does not prove it: the guest's console also reports full disks of the guest.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            tail = file.read().decode("utf-8", "replace")
    except OSError:
        return False
    return any(message in tail for message in _MESSAGES) and any(
        free_bytes(path) < _MAX_FREE_BYTES for path in paths
    )


@contextlib.contextmanager
def full_disk_named(*paths: Path) -> Iterator[None]:
    """Turn a full disk inside the block into :class:`StoreFull`."""
    try:
        yield
    except OSError as error:
        if means_full(error):
            raise store_full(*paths) from error
        raise


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
