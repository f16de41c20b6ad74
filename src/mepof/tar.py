"""Members of tar archives that are the same whenever and by whomever they are written."""

from __future__ import annotations

import tarfile

#: 1980-01-01: tar warns of dates before 1970 and of 1970-01-01 itself.
TIME = 315532800


def member(name: str, *, mode: int = 0o644, size: int = 0) -> tarfile.TarInfo:
    """What stands before the content of a file, or the entry of a directory."""
    made = tarfile.TarInfo(name)
    made.mode, made.size = mode, size
    made.mtime, made.uname, made.gname = TIME, "root", "root"
    return made
