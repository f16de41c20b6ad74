"""Trees out of tarballs."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from uuid import uuid4

from mepof.errors import InputError, WorkError
from mepof.toolchain.protocol import Run

# The first bytes of what tar unpacks: xz, gzip, bzip2, zstd, lzip.
_COMPRESSED = (b"\xfd7zXZ\0", b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"LZIP")
# Where the header of a plain tar archive has its magic number.
_TAR_AT, _TAR = 257, b"ustar"


def is_tarball(path: Path) -> bool:
    """Whether a file begins as a tarball does, compressed or not."""
    with path.open("rb") as file:
        head = file.read(_TAR_AT + len(_TAR))
    return head.startswith(_COMPRESSED) or head[_TAR_AT:] == _TAR


def extract(tarball: Path, output: Path, runner: Run, origin: Path | str | None = None) -> None:
    """Unpack a tarball, without its top directory, if the kernel is in one.

    Args:
        origin: what errors name instead of the file.

    Raises:
        InputError: it is not a tarball, or is damaged.
        WorkError: the disk is full.
    """
    into = ["--directory", str(output), "--no-same-owner"]
    done = runner(["tar", "--extract", *into, "--file", tarball], check=False)
    if done.status != 0:
        complaint = done.output.partition("\n")[0].removeprefix("tar: ")
        # The disk is ours, the tarball is the user's.
        kind = WorkError if os.strerror(errno.ENOSPC) in done.output else InputError
        raise kind(f"{origin or tarball} cannot be unpacked: {complaint}")
    directories = [path for path in output.iterdir() if path.is_dir() and not path.is_symlink()]
    if len(directories) == 1 and not (output / "Kbuild").exists():
        _lift(directories[0])


def _lift(top: Path) -> None:
    """Put what is in a directory in its place, and in that of files beside it."""
    output = top.parent
    for beside in output.iterdir():
        if beside != top:
            beside.unlink()
    # It may contain something of its own name.
    top = top.rename(output / f".{uuid4().hex}")
    top.chmod(0o755)
    for entry in top.iterdir():
        entry.rename(output / entry.name)
    top.rmdir()
