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
from mepof.tar import TIME, member

_MAGIC = b"!<arch>\n"
_VERSION = b"2.0\n"
_CONTROL = "control.tar.xz"
MAX_CONTROL_BYTES = 1 << 20


@dataclass(frozen=True)
class Program:
    """An executable file."""

    content: bytes


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    to: str


Content = bytes | Path | Program | Link
"""What a file contains, or the file that contains the same."""


def write(
    target: Path, control: str, scripts: Mapping[str, str], files: Mapping[str, Content]
) -> None:
    """Write a package.

    Args:
        control: its control file, to which the installed size is added.
        scripts: maintainer scripts by name.
        files: by their paths below ``/``.
    """
    data = io.BytesIO()
    sums, size = [], 0
    with lzma.open(data, "wb", preset=6) as packed, _tar(packed) as tar:
        for name in _directories(files):
            _add_directory(tar, name)
        for name, given in sorted(files.items()):
            if isinstance(given, Link):
                _add_link(tar, name, given.to)
                continue
            content = _content(given)
            _add(tar, name, content, 0o755 if isinstance(given, Program) else 0o644)
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
        file.write(_MAGIC)
        file.write(_part("debian-binary", _VERSION))
        file.write(_part(_CONTROL, head.getvalue()))
        file.write(_part("data.tar.xz", data.getvalue()))


def read_control(path: Path) -> str:
    """The control file of a package that :func:`write` made.

    Raises:
        WorkError: it is not one.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC) + 60 + len(_VERSION) + 60)
            if not head.startswith(_MAGIC) or head[72:88].strip() != _CONTROL.encode():
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


def _directories(files: Mapping[str, Content]) -> list[str]:
    found = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    return sorted("" if name == "." else name for name in found)


def _tar(file: lzma.LZMAFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    tar.addfile(member(f"./{name}", mode=mode, size=len(content)), io.BytesIO(content))


def _content(given: bytes | Path | Program) -> bytes:
    match given:
        case Program(content):
            return content
        case Path():
            return given.read_bytes()
    return given


def _add_link(tar: tarfile.TarFile, name: str, to: str) -> None:
    made = member(f"./{name}", mode=0o777)
    made.type, made.linkname = tarfile.SYMTYPE, to
    tar.addfile(made)


def _add_directory(tar: tarfile.TarFile, name: str) -> None:
    made = member(f"./{name}/" if name else "./", mode=0o755)
    made.type = tarfile.DIRTYPE
    tar.addfile(made)


def _part(name: str, content: bytes) -> bytes:
    """A member of an ``ar`` archive: a header, and the content to an even length."""
    head = f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
    return head.encode() + content + b"\n" * (len(content) % 2)
