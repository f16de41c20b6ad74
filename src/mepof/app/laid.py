"""What is laid into a guest: files, links and directories by their path there.

Paths have no leading slash, and links are followed as the guest's kernel does: below its root.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from mepof.device.initramfs import Entry, archive, tree
from mepof.errors import InputError
from mepof.plan.digest import file_digest

#: The largest file of an initramfs: its size has eight hexadecimal digits.
MAX_SIZE = 2**32 - 1
# Not in text, or of a terminal.
_UNNAMED = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
# The kernel's own limit of links in one path: MAXSYMLINKS in include/linux/namei.h.
_MAX_LINKS = 40


@dataclass(frozen=True)
class Member:
    """A file inside of an uncompressed archive of this machine.

    Attributes:
        offset, size: of its content in the archive, in bytes.
    """

    archive: Path
    offset: int
    size: int


@dataclass(frozen=True)
class Laid:
    """What is at a path of the guest: content, a link, or otherwise a directory.

    Attributes:
        source: a file of this machine, a part of an archive, or bytes that mepof makes.
        mode: permissions; None where only ``executable`` counts.
        owner: user and group.
    """

    source: Path | Member | bytes | None = None
    link: str | None = None
    executable: bool = False
    mode: int | None = None
    owner: tuple[int, int] = (0, 0)

    @property
    def permissions(self) -> int:
        """The mode in the guest."""
        if self.link is not None:
            return 0o777
        if self.mode is not None:
            return self.mode
        return 0o755 if self.executable or self.is_directory else 0o644

    @property
    def is_directory(self) -> bool:
        return self.source is None and self.link is None

    @property
    def size(self) -> int:
        """Bytes of its content."""
        match self.source:
            case Path() as path:
                return path.stat().st_size
            case Member(size=size):
                return size
            case bytes() as data:
                return len(data)
            case None:
                return 0

    def content(self) -> bytes:
        """Its bytes; of a directory or link, none.

        Raises:
            InputError: the file cannot be read.
        """
        try:
            match self.source:
                case Path() as path:
                    return path.read_bytes()
                case Member(archive, offset, size):
                    with archive.open("rb") as file:
                        file.seek(offset)
                        return file.read(size)
                case bytes() as data:
                    return data
                case None:
                    return b""
        except OSError as error:
            raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error

    def digest(self) -> str:
        """What decides how the guest sees it.

        Raises:
            InputError: the file cannot be read.
        """
        if self.link is not None:
            return f"link {self.link}"
        kind = f"{self.permissions:o} {self.owner[0]}:{self.owner[1]}"
        if self.source is None:
            return f"directory {kind}"
        if isinstance(self.source, Path):
            try:
                return f"file {kind} {file_digest(self.source)}"
            except OSError as error:
                raise InputError(f"{self.source} cannot be read: {error.strerror}") from error
        return f"file {kind} {sha256(self.content()).hexdigest()}"

    def entry(self, path: str) -> Entry:
        """It in an initramfs archive, at a path in the guest.

        Raises:
            InputError: the file cannot be read.
        """
        data = None if self.source is None else self.content()
        return Entry(path, self.permissions, data, link=self.link, owner=self.owner)

    def same_as(self, other: Laid) -> bool:
        """Whether the guest would be the same with the other."""
        if self == other:
            return True
        if self.source is None or other.source is None:
            return False
        alike = (self.permissions, self.owner) == (other.permissions, other.owner)
        return alike and self.size == other.size and self.content() == other.content()


def check_name(path: str, what: str) -> None:
    """Refuse a name of which messages and lists could not be made.

    Raises:
        InputError: it has control characters, or is not UTF-8.
    """
    if _UNNAMED.search(path):
        why = "it has control characters, or is not UTF-8"
        raise InputError(
            f"{what}: {path!r} is not a name that a guest can have: {why}", "rename it"
        )


def resolve(path: str, files: Mapping[str, Laid]) -> str | None:
    """Where a path leads over links; None if they form a loop.

    The last part, and what is below it, may not exist.
    """
    ahead = list(reversed(PurePosixPath(path).parts))
    at: list[str] = []
    links = 0
    while ahead:
        part = ahead.pop()
        if part == "/":
            at = []
        elif part == "..":
            at = at[:-1]
        else:
            here = "/".join((*at, part))
            laid = files.get(here)
            if laid is None or laid.link is None:
                at.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            ahead += reversed(PurePosixPath(laid.link).parts)
    return "/".join(at)


def resolve_parent(path: str, files: Mapping[str, Laid]) -> str | None:
    """The same without following the last part itself."""
    parent, _, name = path.rpartition("/")
    if not parent:
        return name
    above = resolve(parent, files)
    return above if above is None else f"{above}/{name}".lstrip("/")


def is_directory(path: str, files: Mapping[str, Laid]) -> bool:
    """Whether a path, without links in it, is a directory; one above laid files is."""
    laid = files.get(path)
    return laid.is_directory if laid else any(each.startswith(f"{path}/") for each in files)


def write_archive(files: Mapping[str, Laid], path: Path) -> None:
    """Write the initramfs archive of files by their path in the guest.

    Raises:
        InputError: a file cannot be read.
    """
    path.write_bytes(archive(tree(laid.entry(name) for name, laid in files.items())))
