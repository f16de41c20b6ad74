"""An artifact as one file: a tar archive, compressed with Zstandard.

A kernel tree has 80,000 files, and a bucket answers some hundred requests a second, so artifacts
travel whole. An archive holds what the digest of a tree covers and nothing else, so that two
machines that made the same artifact write the same archive.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

from mepof.errors import EnvironmentLack
from mepof.plan.digest import walk

#: The suffix of an archive's name.
ARCHIVE = "tar.zst"

_LEVEL = 3  # compresses a kernel build as fast as a disk writes it
_LIMIT = 1 << 31  # the window that a reader allows, in bytes
_CHUNK = 1 << 20


class NotAnArchive(Exception):
    """The file is not a complete archive of an artifact."""


def pack(tree: Path, archive: Path) -> None:
    """Write a tree as an archive.

    Raises:
        EnvironmentLack: the library is missing.
        OSError: the tree cannot be read, or the archive cannot be written.
    """
    zstandard = library()
    with (
        archive.open("wb") as file,
        zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for relative, kind, status in walk(tree):
            entry = tarfile.TarInfo(relative)
            entry.mode = 0o755 if kind in ("dir", "exec") else 0o644
            if kind == "dir":
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            elif kind == "link":
                entry.type = tarfile.SYMTYPE
                entry.linkname = str((tree / relative).readlink())
                tar.addfile(entry)
            elif kind in ("file", "exec"):
                entry.size = status.st_size
                with (tree / relative).open("rb") as content:
                    tar.addfile(entry, content)
            else:
                raise OSError(f"{tree / relative} is neither a file, a directory nor a link")


def unpack(archive: Path, tree: Path) -> None:
    """Unpack an archive into an empty directory; nothing outside of it is written.

    Raises:
        NotAnArchive: it is damaged, or has an entry that no artifact has.
        OSError: the directory cannot be written.
        EnvironmentLack: the library is missing.
    """
    zstandard = library()
    try:
        with (
            archive.open("rb") as file,
            zstandard.ZstdDecompressor(max_window_size=_LIMIT).stream_reader(
                file, read_across_frames=True
            ) as content,
            tarfile.open(fileobj=content, mode="r|") as tar,
        ):
            directories = {""}
            for entry in tar:
                _unpack_entry(tar, entry, tree, directories)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
        raise NotAnArchive(str(error)) from error


def _unpack_entry(
    tar: tarfile.TarFile, entry: tarfile.TarInfo, tree: Path, directories: set[str]
) -> None:
    parent, _, name = entry.name.rpartition("/")
    # Only directories that we made ourselves: a link is never followed.
    if name in ("", ".", "..") or parent not in directories:
        raise NotAnArchive(f"the entry {entry.name!r} lies outside of the artifact")
    path = tree / entry.name
    if path.is_symlink() or path.exists():
        raise NotAnArchive(f"the entry {entry.name!r} occurs twice")
    if entry.isdir():
        path.mkdir()
        directories.add(entry.name)
    elif entry.issym():
        path.symlink_to(entry.linkname)
    elif entry.isreg() and (content := tar.extractfile(entry)) is not None:
        with path.open("xb") as file:
            shutil.copyfileobj(content, file, _CHUNK)
        if path.stat().st_size != entry.size:
            raise NotAnArchive(f"the entry {entry.name!r} ends early")
        path.chmod(0o755 if entry.mode & 0o100 else 0o644)
    else:
        raise NotAnArchive(f"the entry {entry.name!r} is of a kind that no artifact has")


def library() -> Any:
    """The module ``zstandard``.

    Raises:
        EnvironmentLack: it is not installed.
    """
    try:
        import zstandard
    except ImportError as error:
        raise EnvironmentLack(
            "a shared store needs the Python package zstandard", REMEDY
        ) from error
    return zstandard


REMEDY = "install mepof with its extra `remote`: pip install 'mepof[remote]'"
