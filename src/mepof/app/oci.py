"""OCI image layouts: directories as `skopeo copy … oci:DIR` and `docker buildx` write them.

https://github.com/opencontainers/image-spec, version 1.1.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mepof import arch as architectures
from mepof.app.laid import Laid, is_directory, resolve
from mepof.app.layers import HIDDEN, decompressed, overlay
from mepof.described import first_error, refuse_special
from mepof.errors import InputError
from mepof.plan.store import default_store
from mepof.process import of_machine

_NAME = "org.opencontainers.image.ref.name"
_DIGEST = re.compile(r"^sha256:[0-9a-f]{64}$")
# What may name an image in a registry, such as docker://ghcr.io/acme/shop:1.2; or else a path.
_REFERENCE = re.compile(r"^(?:\w+://)?([a-z0-9][\w./:@-]*)$")
_AGAIN = "write it again: skopeo copy docker://IMAGE oci:DIR"
# An index may lead to an index.
_MAX_DEPTH = 4


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Platform(_Document):
    architecture: str = ""
    os: str = "linux"


class _Descriptor(_Document):
    media_type: str = Field(default="", alias="mediaType")
    digest: str
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Index(_Document):
    manifests: tuple[_Descriptor, ...]


class _Manifest(_Document):
    config: _Descriptor
    layers: tuple[_Descriptor, ...]


class _Settings(_Document):
    user: str | None = Field(default=None, alias="User")
    environment: tuple[str, ...] | None = Field(default=None, alias="Env")
    entrypoint: tuple[str, ...] | None = Field(default=None, alias="Entrypoint")
    command: tuple[str, ...] | None = Field(default=None, alias="Cmd")
    directory: str | None = Field(default=None, alias="WorkingDir")


class _Config(_Document):
    architecture: str
    os: str
    config: _Settings | None = None


_Any = TypeVar("_Any", bound=_Document)


@dataclass(frozen=True)
class Image:
    """What an image lays into a guest, and how it starts programs.

    Attributes:
        argv: its entry point and command.
        user: as written: names or numbers, of a user or ``user:group``.
        digest: of its manifest.
        left_out: devices and FIFOs in its layers, which are not laid.
    """

    files: dict[str, Laid] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    directory: str | None = None
    user: str = ""
    digest: str = ""
    left_out: tuple[str, ...] = ()


@of_machine
@cache
def read_image(layout: Path, name: str | None, arch: str) -> Image:
    """The image in a layout for an architecture.

    Args:
        name: its tag, of several.

    Raises:
        InputError: the directory is not a layout, has no such image, or is damaged.
        EnvironmentLack: a layer needs a program that is missing.
    """
    check_layout(layout)
    wanted = architectures.get(arch).debian or arch
    index = _read(layout / "index.json", _Index)
    named = [m for m in index.manifests if name in (None, (m.annotations or {}).get(_NAME))]
    if not index.manifests:
        raise InputError(f"{layout} has no image: its index.json lists none", _AGAIN)
    if not named:
        known = sorted({(m.annotations or {}).get(_NAME, "") for m in index.manifests} - {""})
        raise InputError(
            f"{layout} has no image `{name}`", "known: " + ", ".join(known or ["none"])
        )
    found = {}
    offered = []
    for descriptor in _manifests(layout, named, 0):
        manifest = _read(_blob(layout, descriptor), _Manifest)
        config = _read(_blob(layout, manifest.config), _Config)
        offered.append(config.architecture)
        # Go's names of architectures, which are Debian's for those that mepof has.
        if (config.os, config.architecture) == ("linux", wanted):
            found[descriptor.digest] = (manifest, config.config or _Settings())
    if not offered:
        raise InputError(f"{layout} has no image for Linux: its indexes list none", _AGAIN)
    if not found:
        raise InputError(
            f"{layout} has no image for linux/{wanted}, only for {', '.join(sorted(set(offered)))}"
        )
    if len(found) > 1:
        raise InputError(f"{layout} has {len(found)} images", f'name one: `image = "{layout}:TAG"`')
    ((digest, (manifest, settings)),) = found.items()
    files: dict[str, Laid] = {}
    left_out: list[str] = []
    for layer in manifest.layers:
        what = f"the layer {layer.digest[:19]} of {layout}"
        left_out += overlay(files, _layer(layout, layer), what)
    # Container runtimes make the working directory, which need not be in any layer.
    directory = resolve(settings.directory or "", files)
    hidden = directory is None or directory.partition("/")[0] in HIDDEN
    if directory and not hidden and not is_directory(directory, files):
        files.setdefault(directory, Laid())
    variables = [each.partition("=") for each in settings.environment or ()]
    return Image(
        files=files,
        argv=(settings.entrypoint or ()) + (settings.command or ()),
        environment=tuple((key, value) for key, _, value in variables),
        directory=settings.directory or None,
        user=settings.user or "",
        digest=digest,
        left_out=tuple(left_out),
    )


def check_layout(layout: Path) -> None:
    """Refuse what is not a layout.

    Raises:
        InputError: it is not; the remedy makes one of a tarball.
    """
    if (layout / "oci-layout").is_file():
        return
    if layout.is_dir():
        raise InputError(
            f"{layout} is not an OCI image layout: it has no file oci-layout",
            "write one to another directory: skopeo copy docker-daemon:IMAGE oci:DIR",
        )
    refuse_special(layout)
    beside = layout.with_name(f"{layout.name.partition('.')[0]}-oci")
    inside = _names_in(layout)
    remedy = None
    # Archives of docker save have had both since version 25.
    if "oci-layout" in inside:
        remedy = f"mkdir {beside} && tar -xf {layout} -C {beside}"
    elif "manifest.json" in inside:
        remedy = f"skopeo copy docker-archive:{layout} oci:{beside}"
    raise InputError(
        f"{layout} is not an OCI image layout: it is a file, not a directory",
        remedy and f"{remedy}, and name {beside.name}",
    )


def registry_remedy(image: str, base: Path) -> str | None:
    """How to write an image to a layout below a directory; None if its name is not one of a
    registry's."""
    reference = _REFERENCE.match(image)
    if reference is None:
        return None
    name = re.split("[:@]", PurePosixPath(reference[1]).name)[0]
    return (
        f"if a registry has it: skopeo copy docker://{reference[1]} oci:{base / name}, "
        f"and name {name}"
    )


def _names_in(archive: Path) -> set[str]:
    try:
        with tarfile.open(archive) as tar:
            return {name.removeprefix("./") for name in tar.getnames()}
    except (tarfile.TarError, OSError, EOFError):
        return set()


def _manifests(layout: Path, descriptors: list[_Descriptor], depth: int) -> Iterator[_Descriptor]:
    """The manifests of images, also those that an index inside of the index lists."""
    if depth > _MAX_DEPTH:
        raise InputError(f"{layout}: its indexes refer to each other")
    for each in descriptors:
        if each.media_type.endswith(("image.index.v1+json", "manifest.list.v2+json")):
            inner = _read(_blob(layout, each), _Index)
            yield from _manifests(layout, list(inner.manifests), depth + 1)
        elif each.platform is None or each.platform.os == "linux":
            yield each


def _layer(layout: Path, layer: _Descriptor) -> Path:
    """Its tar archive; the digest is checked when it enters the cache."""
    cached = default_store() / "cache" / "layers"
    digest = layer.digest.removeprefix("sha256:")
    blob = _blob(layout, layer, check=not (cached / f"{digest}.tar").is_file())
    with blob.open("rb") as file:
        return decompressed(file, digest, cached, f"the layer {layer.digest[:19]} of {layout}")


def _blob(layout: Path, descriptor: _Descriptor, check: bool = True) -> Path:
    if not _DIGEST.match(descriptor.digest):
        raise InputError(f"{layout}: `{descriptor.digest}` is not a SHA-256 digest")
    digest = descriptor.digest.removeprefix("sha256:")
    path = layout / "blobs" / "sha256" / digest
    if not path.is_file():
        raise InputError(f"{layout} is not complete: {path.relative_to(layout)} is missing")
    with path.open("rb") as file:
        if check and file_digest(file, "sha256").hexdigest() != digest:
            raise InputError(f"{path} is damaged: its SHA-256 is not its name")
    return path


def _read(path: Path, model: type[_Any]) -> _Any:
    try:
        refuse_special(path)
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path} is not of an OCI image: {first_error(error)}") from error
