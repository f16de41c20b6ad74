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
from pathlib import Path

from mepof.errors import WorkError
from mepof.package.contents import Content, Link, Program, add, data_of, directories
from mepof.tar import TIME

_MAGIC = b"!<arch>\n"
_VERSION = b"2.0\n"
_CONTROL = "control.tar.xz"
MAX_CONTROL_BYTES = 1 << 20


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
        for name in directories(files):
            add(tar, f"./{name}".removesuffix("/"), None)
        for name, given in sorted(files.items()):
            add(tar, f"./{name}", given)
            if isinstance(given, Link):
                continue
            content = data_of(given)
            sums.append(f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {name}\n")
            size += -(-len(content) // 1024)
    about: dict[str, bytes | Program] = {
        "control": f"{control}Installed-Size: {size}\n".encode(),
        **{name: Program(text.encode()) for name, text in scripts.items()},
    }
    if sums:
        about["md5sums"] = "".join(sums).encode()
    head = io.BytesIO()
    with lzma.open(head, "wb", preset=6) as packed, _tar(packed) as tar:
        add(tar, ".", None)
        for name, given in sorted(about.items()):
            add(tar, f"./{name}", given)
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


def _tar(file: lzma.LZMAFile) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="w|", format=tarfile.GNU_FORMAT)


def _part(name: str, content: bytes) -> bytes:
    """A member of an ``ar`` archive: a header, and the content to an even length."""
    head = f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
    return head.encode() + content + b"\n" * (len(content) % 2)
