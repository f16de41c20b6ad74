"""Layers: tar archives that are laid over one another, of OCI images and Debian packages.

Nothing is unpacked into files: a layer is decompressed once, and its members are read from the tar
archive where they lie. So no name in a layer ever becomes a path of this machine.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import IO

from mepof import compressed
from mepof.app.laid import Laid, Member, check_name, resolve, resolve_parent
from mepof.errors import InputError, WorkError
from mepof.magic import XZ, ZSTD
from mepof.process import run

_MAGIC_BYTES = len(XZ)  # the longest
# The image specification, "Whiteouts": layer.md of opencontainers/image-spec.
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
#: What helps if a file is damaged.
COPY_AGAIN = "copy it again, or write it again by what made it"
#: Directories whose content the guest mounts over.
HIDDEN = frozenset(("dev", "proc", "sys", "tmp"))


def is_compressed(blob: IO[bytes]) -> bool:
    """Whether it is compressed as layers are; it is left where it is."""
    return _magic(blob).startswith(compressed.MAGICS)


def decompressed(
    blob: IO[bytes], digest: str, cache: Path, what: str, *, of_content: bool = False
) -> Path:
    """The tar archive in a compressed layer, kept in the cache.

    Args:
        blob: positioned at the layer's first byte; its end is the layer's.
        digest: of the layer, which names the archive in the cache.
        what: the layer, for messages.
        of_content: the digest is the archive's SHA-256, and is checked.

    Raises:
        InputError: it is damaged.
        EnvironmentLack: it needs a program that is missing.
    """
    target = cache / f"{digest}.tar"
    if target.is_file():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        new = Path(scratch) / "tar"
        try:
            _decompress(blob, new, Path(scratch))
        except (compressed.Damaged, WorkError) as error:
            raise InputError(f"{what} is damaged: {error}", COPY_AGAIN) from error
        if of_content:
            with new.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != digest:
                    raise InputError(
                        f"{what} is damaged: its SHA-256 is not the image's", COPY_AGAIN
                    )
        new.rename(target)
    return target


def _magic(blob: IO[bytes]) -> bytes:
    start = blob.read(_MAGIC_BYTES)
    blob.seek(-len(start), os.SEEK_CUR)
    return start


def _decompress(blob: IO[bytes], new: Path, scratch: Path) -> None:
    start = _magic(blob)
    if start.startswith(ZSTD):
        packed = scratch / "zst"
        with packed.open("wb") as file:
            shutil.copyfileobj(blob, file)
        run(compressed.by_zstd(packed, new))
        return
    with new.open("wb") as file:
        compressed.copy(blob, file, start)


def overlay(files: MutableMapping[str, Laid], archive: Path, what: str) -> list[str]:
    """Lay an archive over files.

    Returns:
        Its devices and FIFOs, which are left out: guests make their own in ``/dev``.

    Raises:
        InputError: it is damaged, or leads outside of its root.
    """
    left_out: list[str] = []
    members = list(_members(archive, what))
    # A whiteout hides what is in lower layers, not what its own layer brings.
    for path, _ in members:
        parent, _, name = path.rpartition("/")
        if name.startswith(_WHITEOUT):
            hidden = parent if name == _OPAQUE else f"{parent}/{name.removeprefix(_WHITEOUT)}"
            target = resolve_parent(hidden.lstrip("/"), files)
            if target is not None:
                _remove(files, target, itself=name != _OPAQUE)
    # What guests do not have, though hard links to it may be elsewhere; None for a device.
    outside: dict[str, Laid | None] = {}
    for path, member in members:
        if PurePosixPath(path).name.startswith(_WHITEOUT):
            continue
        at = resolve_parent(path, files)
        if at is None:
            raise InputError(f"{what}: the links above /{path} form a loop")
        outside.pop(at, None)
        if at.partition("/")[0] in HIDDEN and at not in HIDDEN:
            with suppress(InputError):  # what nothing else names need not be sound
                outside[at] = _laid(member, archive, files, outside, what)
            continue
        laid = _laid(member, archive, files, outside, what)
        if laid is None:
            outside[at] = None
            _remove(files, at, itself=True)
            left_out.append(f"/{at}")
            continue
        known = files.get(at)
        if known is not None and not (known.is_directory and laid.is_directory):
            _remove(files, at, itself=True)
        files[at] = laid
    return left_out


def _members(archive: Path, what: str) -> Iterator[tuple[str, tarfile.TarInfo]]:
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                if ".." in parts:
                    raise InputError(f"{what}: `{member.name}` leads outside of its root")
                path = "/".join(part for part in parts if part != "/")
                check_name(path, what)
                if path:
                    yield path, member
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{what} is not a tar archive: {error}", COPY_AGAIN) from error


def _laid(
    member: tarfile.TarInfo,
    archive: Path,
    files: Mapping[str, Laid],
    outside: Mapping[str, Laid | None],
    what: str,
) -> Laid | None:
    """What a member is; None for a device or a FIFO."""
    if member.isdev():
        return None
    mode, owner = member.mode & 0o7777, (member.uid, member.gid)
    if member.isdir():
        return Laid(mode=mode, owner=owner)
    if member.issym():
        return Laid(link=member.linkname, owner=owner)
    if member.islnk():
        # Of a symbolic link, it is another name.
        target = resolve_parent(member.linkname.lstrip("/"), files) or ""
        linked = outside[target] if target in outside else files.get(target, Laid())
        if linked is not None and linked.is_directory:
            raise InputError(
                f"{what}: `{member.name}` is a hard link to {member.linkname}, which is not a file"
            )
        return linked
    if member.issparse():
        raise InputError(f"{what}: `{member.name}` is a sparse file", "pack it without --sparse")
    if not member.isreg():
        raise InputError(f"{what}: `{member.name}` is neither a file, a directory nor a link")
    source = Member(archive, member.offset_data, member.size)
    return Laid(source, mode=mode, owner=owner, executable=bool(mode & 0o100))


def _remove(files: MutableMapping[str, Laid], path: str, *, itself: bool) -> None:
    if path in files and not files[path].is_directory:
        del files[path]
        return
    below = f"{path}/" if path else ""
    for each in [each for each in files if each.startswith(below)]:
        del files[each]
    if itself:
        files.pop(path, None)


def without_link(files: MutableMapping[str, Laid], directory: str) -> None:
    """Replace a link in place of a directory of the guest (``bin`` → ``usr/bin``) by a directory
    of links, because the guest has files of its own there."""
    laid = files.get(directory)
    if laid is None or laid.link is None:
        return
    target = resolve(directory, files)
    del files[directory]
    inside = f"{target}/"
    found = [each.removeprefix(inside) for each in files if each.startswith(inside)]
    for name in {each.partition("/")[0] for each in found} if directory not in HIDDEN else ():
        files[f"{directory}/{name}"] = Laid(link=f"/{inside}{name}")
