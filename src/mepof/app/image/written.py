"""What an image is written as: a directory, or a tarball, however compressed."""

from __future__ import annotations

import posixpath
import re
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from mepof.app.image.layers import COPY_AGAIN, decompressed, is_compressed, overlay
from mepof.app.image.mistaken import mistaken_for
from mepof.app.laid import Laid
from mepof.described import first_error, refuse_special
from mepof.errors import InputError
from mepof.plan.digest import file_digest
from mepof.plan.store import default_store

AnyDocument = TypeVar("AnyDocument", bound=BaseModel)
#: How an image is written again.
AGAIN = "write it again: skopeo copy docker://IMAGE oci:DIR"
_DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
_FORMS = "name an OCI image layout, what `docker save` wrote, or a tarball of a root file system"
# What a link of an archive leads to may be a link.
_MAX_LINKS = 8


class Written(Protocol):
    """The files of an image, by their path in it.

    Attributes:
        path: what the user named.
    """

    path: Path

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        ...

    def open(self, name: str) -> BufferedReader:
        """Open a file that an image must have.

        Raises:
            InputError: it is missing, or cannot be read.
        """
        ...


class _Directory:
    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def open(self, name: str) -> BufferedReader:
        path = self.path / name
        if not path.exists():
            raise _incomplete(self.path, name)
        return _reading(path)


class Tarball:
    """A tarball.

    Attributes:
        plain: the tar archive, not compressed.
    """

    def __init__(self, path: Path, plain: Path, tar: tarfile.TarFile) -> None:
        self.path, self.plain, self._tar = path, plain, tar
        self._members = {_clean(member.name): member for member in tar}

    def names(self) -> Iterator[str]:
        """All files' and directories'."""
        return iter(self._members)

    def has(self, name: str) -> bool:
        return self._member(name) is not None

    def open(self, name: str) -> BufferedReader:
        member = self._member(name)
        found = None if member is None else self._tar.extractfile(member)
        if not isinstance(found, BufferedReader):
            raise _incomplete(self.path, name)
        return found

    def _member(self, name: str) -> tarfile.TarInfo | None:
        # `docker save` before version 25 made a link of a layer that it had written before.
        for _ in range(_MAX_LINKS):
            member = self._members.get(name)
            if member is None or not member.issym():
                return member
            name = _clean(f"{PurePosixPath(name).parent}/{member.linkname}")
        return None


def _incomplete(path: Path, name: str) -> InputError:
    return InputError(f"{path} is not complete: {name} is missing", AGAIN)


def _clean(name: str) -> str:
    """A name without a leading slash, and without `.` and `..` in it."""
    return posixpath.normpath(f"/{name}").lstrip("/")


@contextmanager
def opened(path: Path) -> Iterator[_Directory | Tarball]:
    """What an image is written as.

    Raises:
        InputError: it is a file, and not a tarball.
        EnvironmentLack: it needs a program that is missing.
    """
    if path.is_dir():
        yield _Directory(path)
        return
    plain = _plain(path)
    with _tar(path, plain) as tar:
        try:
            yield Tarball(path, plain, tar)
        except (tarfile.TarError, EOFError) as error:
            raise InputError(f"{path} is damaged: {error}", COPY_AGAIN) from error


def check_tarball(path: Path) -> None:
    """Refuse at once a file that is not a tarball; one that is compressed is not looked into.

    Raises:
        InputError: it is not.
    """
    with _reading(path) as file:
        compressed = is_compressed(file)
    if not compressed:
        _tar(path, path).close()


def _tar(path: Path, plain: Path) -> tarfile.TarFile:
    # First: tarfile takes 512 zeros, with which file systems begin, for an empty archive.
    if known := mistaken_for(path, plain):
        raise InputError(f"{path} is {known[0]}, not a tarball", known[1])
    try:
        return tarfile.open(plain, "r:")
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{path} is not a tarball: {error}", _FORMS) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _plain(path: Path) -> Path:
    """A tarball that is not compressed."""
    with _reading(path) as file:
        if not is_compressed(file):
            return path
        cached = default_store() / "cache" / "tarballs"
        return decompressed(file, file_digest(path), cached, str(path))


def _reading(path: Path) -> BufferedReader:
    refuse_special(path)
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read(files: Written, name: str, model: type[AnyDocument]) -> AnyDocument:
    """A JSON document of an image.

    Raises:
        InputError: it is missing, or another document.
    """
    with files.open(name) as file:
        data = file.read()
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise InputError(
            f"{files.path}: {name} is not of an image: {first_error(error)}", AGAIN
        ) from error


@dataclass(frozen=True)
class Layer:
    """A layer of an image.

    Attributes:
        name: its path in the image.
        called: what messages call it.
        digest: the digits of its SHA-256.
    """

    name: str
    called: str
    digest: str


def lay(
    image: Written, layers: Iterable[Layer], *, of_content: bool = False
) -> tuple[dict[str, Laid], list[str]]:
    """The files of layers that are laid over one another, and what was left out.

    Args:
        of_content: digests are those of the layers' tar archives, not compressed, and are checked.

    Raises:
        InputError: a layer is missing or damaged.
        EnvironmentLack: one needs a program that is missing.
    """
    files: dict[str, Laid] = {}
    left_out: list[str] = []
    for layer in layers:
        what = f"the layer {layer.called} of {image.path}"
        with image.open(layer.name) as file:
            plain = decompressed(file, layer.digest, cache(), what, of_content=of_content)
        left_out += overlay(files, plain, what)
    return files, left_out


def cache() -> Path:
    """Where the layers of images are kept, by their digests."""
    return default_store() / "cache" / "layers"


def sha256_of(files: Written, digest: str) -> str:
    """The hexadecimal digits of a digest, which name a file.

    Raises:
        InputError: it is not a SHA-256.
    """
    if not _DIGEST.match(digest):
        raise InputError(f"{files.path}: `{digest}` is not a SHA-256 digest")
    return digest.removeprefix("sha256:")
