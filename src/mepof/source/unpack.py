"""Trees out of tarballs."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from uuid import uuid4

from mepof import compressed, magic
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed
from mepof.source.directory import GENERATED, note_left_out
from mepof.source.protocol import Workshop
from mepof.toolchain.protocol import Run

# The first bytes of what tar unpacks.
_LZIP = b"LZIP"
_COMPRESSED = (*compressed.MAGICS, _LZIP)
_HEAD_BYTES = 512
# What tar says of a program that it starts and that is not there.
_NOT_INSTALLED = re.compile(r"^(?:tar \(child\): )?(\w+): Cannot exec: No such file", re.M)
_PACKAGES = {"xz": "xz-utils"}


def is_tarball(path: Path) -> bool:
    """Whether a file begins as a tarball does, compressed or not."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return head.startswith(_COMPRESSED) or magic.has(head, magic.TAR)


def extract(
    tarball: Path, output: Path, workshop: Workshop, origin: Path | str | None = None
) -> None:
    """Unpack a tarball, without its top directory, if the kernel is in one.

    What kbuild writes beside the source is removed.

    Args:
        origin: what errors name instead of the file.

    Raises:
        InputError: it is not a tarball, or is damaged.
        EnvironmentLack: the program that decompresses it is not installed.
        WorkError: the disk is full.
    """
    into = ["--directory", str(output), "--no-same-owner"]
    command = ["tar", "--extract", *into, "--file", tarball]
    _check(workshop.run(command, env={"LC_ALL": "C"}, check=False), origin or tarball)
    _make_writable(output)
    directories = [path for path in output.iterdir() if path.is_dir() and not path.is_symlink()]
    if len(directories) == 1 and not (output / "Kbuild").exists():
        _lift(directories[0])
    note_left_out(_without_generated(output), workshop)


def _make_writable(output: Path) -> None:
    """Let what is in directories be moved and removed, whatever modes the tarball gave them."""
    for directory, _, _ in os.walk(output):
        path = Path(directory)
        path.chmod(path.stat().st_mode | stat.S_IRWXU)


def _without_generated(tree: Path) -> list[str]:
    """Remove what kbuild writes beside the source; returns what was there."""
    root = tree.resolve()
    found = sorted({path for pattern in GENERATED for path in root.glob(pattern)})
    # A link of the tarball may lead to a directory elsewhere.
    ours = [p for p in found if p.parent.resolve() == p.parent and (p.is_symlink() or p.is_file())]
    for path in ours:
        path.unlink()
    return [path.relative_to(root).as_posix() for path in ours]


def decompress(tarball: Path, target: Path, runner: Run, origin: Path | str) -> None:
    """Write the uncompressed tar of a tarball, whose first bytes say how it is compressed.

    Args:
        origin: what errors name instead of the file.

    Raises:
        InputError: it is damaged, or compressed by lzip.
        EnvironmentLack: the program that decompresses it is not installed.
        WorkError: the disk is full.
    """
    with tarball.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_LZIP):
        raise InputError(
            f"{origin} is compressed by lzip, and its signature is of the uncompressed tar",
            "name a .tar.xz, or with signature=… a signature of the file itself",
        )
    if head.startswith(magic.ZSTD):
        _check(runner(compressed.by_zstd(tarball, target), check=False), origin)
        return
    try:
        with tarball.open("rb") as source, target.open("wb") as file:
            compressed.copy(source, file, head)
    except compressed.Damaged as error:
        raise InputError(f"{origin} cannot be unpacked: {error}") from error


def _check(done: Completed, origin: Path | str) -> None:
    if done.status != 0:
        if lacking := _NOT_INSTALLED.search(done.output):
            remedy = f"apt-get install {_PACKAGES.get(lacking[1], lacking[1])}"
            raise EnvironmentLack(f"{origin} is unpacked by {lacking[1]}: not installed", remedy)
        # gzip begins with an empty line.
        said = next((line for line in done.output.splitlines() if line.strip()), "it failed")
        complaint = said.removeprefix("tar: ")
        # The disk is ours, the tarball is the user's.
        kind = WorkError if os.strerror(errno.ENOSPC) in done.output else InputError
        raise kind(f"{origin} cannot be unpacked: {complaint}")


def _lift(top: Path) -> None:
    """Put what is in a directory in its place, and in that of files beside it."""
    output = top.parent
    for beside in output.iterdir():
        if beside != top:
            beside.unlink()
    # It may contain something of its own name.
    top = top.rename(output / f".{uuid4().hex}")
    for entry in top.iterdir():
        entry.rename(output / entry.name)
    top.rmdir()
