"""Debian's binary packages as files: an ``ar`` archive of two compressed ``tar`` archives (deb(5)).

They are written here and not by dpkg-deb, so that the same content gives the same bytes on every
machine (docs/decisions/0031-packages-are-written-here.md).
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mepof.errors import WorkError

_MAGIC = b"!<arch>\n"
_VERSION = b"2.0\n"
#: 1980-01-01: tar warns of dates before 1970 and of 1970-01-01 itself.
_TIME = 315532800
_CONTROL = "control.tar.xz"
MAX_CONTROL_BYTES = 1 << 20


@dataclass(frozen=True)
class Member:
    """A file of a package: its content, or the path of it, and whether it is a program."""

    content: bytes | Path
    program: bool = False

    def read(self) -> bytes:
        """The content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


def write(
    target: Path, control: str, scripts: Mapping[str, str], files: Mapping[str, Member], work: Path
) -> None:
    """Write a package.

    Args:
        control: its control file, to which the installed size is added.
        scripts: maintainer scripts by name.
        files: by their paths below ``/``.
        work: scratch.
    """
    data = work / "data.tar.xz"
    sums, size = [], 0
    with lzma.open(data, "wb", preset=6) as packed, _tar(packed) as tar:
        for name in _directories(files):
            _add_directory(tar, name)
        for name, member in sorted(files.items()):
            content = member.read()
            _add(tar, name, content, 0o755 if member.program else 0o644)
            sums.append(f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {name}\n")
            size += -(-len(content) // 1024)
    about = {
        "control": (f"{control}Installed-Size: {size}\n", 0o644),
        "md5sums": ("".join(sums), 0o644),
        **{name: (text, 0o755) for name, text in scripts.items()},
    }
    head = io.BytesIO()
    with lzma.open(head, "wb", preset=6) as packed, _tar(packed) as tar:
        _add_directory(tar, "")
        for name, (text, mode) in sorted(about.items()):
            if text:
                _add(tar, name, text.encode(), mode)
    with target.open("wb") as file:
        file.write(_MAGIC + _part("debian-binary", len(_VERSION)) + _VERSION)
        control_bytes = head.getvalue()
        file.write(_part(_CONTROL, len(control_bytes)) + _even(control_bytes))
        packed_data = data.read_bytes()
        file.write(_part("data.tar.xz", len(packed_data)) + _even(packed_data))
    data.unlink()


def read_control(path: Path) -> str:
    """The control file of a package that :func:`write` made.

    Raises:
        WorkError: it is not one.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC) + 60 + len(_VERSION) + 60)
            if not head.startswith(_MAGIC) or head[72:88].strip() != _CONTROL[:16].encode():
                raise ValueError("it is not a package that mepof wrote")
            size = int(head[-12:-2])
            if size > MAX_CONTROL_BYTES:
                raise ValueError("its control archive is too large")
            packed = io.BytesIO(file.read(size))
        with lzma.open(packed) as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
            for member in tar:
                if member.name == "./control" and member.size <= MAX_CONTROL_BYTES:
                    found = tar.extractfile(member)
                    if found is not None:
                        return found.read().decode()
        raise ValueError("it has no control file")
    except (OSError, EOFError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
        raise WorkError(f"{path} cannot be read as a package: {error}") from error


def fields(control: str) -> dict[str, str]:
    """The fields of a control file that have one line, and the first line of others."""
    pairs = (line.partition(":") for line in control.splitlines() if line[:1].strip())
    return {name: value.strip() for name, _, value in pairs}


def _directories(files: Mapping[str, Member]) -> list[str]:
    found = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    return sorted("" if name == "." else name for name in found)


def _tar(file: lzma.LZMAFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT)


def _entry(name: str, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(f"./{name}")
    made.mode, made.mtime, made.uname, made.gname = mode, _TIME, "root", "root"
    return made


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    made = _entry(name, mode)
    made.size = len(content)
    tar.addfile(made, io.BytesIO(content))


def _add_directory(tar: tarfile.TarFile, name: str) -> None:
    made = _entry(f"{name}/" if name else "", 0o755)
    made.type = tarfile.DIRTYPE
    tar.addfile(made)


def _part(name: str, size: int) -> bytes:
    """The header of a member of an ``ar`` archive."""
    return f"{name:<16}{_TIME:<12}{0:<6}{0:<6}{'100644':<8}{size:<10}`\n".encode()


def _even(content: bytes) -> bytes:
    return content + b"\n" if len(content) % 2 else content
