"""OCI image layouts, as `skopeo copy … oci:DIR`, `docker buildx` and `docker save` write them.

https://github.com/opencontainers/image-spec, version 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest

from pydantic import Field

from mepof.app.image.layers import COPY_AGAIN
from mepof.app.image.model import Config, Document, Image, wanted
from mepof.app.image.written import (
    AGAIN,
    AnyDocument,
    Layer,
    Written,
    cache,
    lay,
    read,
    sha256_of,
)
from mepof.errors import InputError

#: The file that every layout has.
MARKER = "oci-layout"
_NAME = "org.opencontainers.image.ref.name"
# An index may lead to an index.
_MAX_DEPTH = 4


class _Platform(Document):
    architecture: str = ""
    os: str = "linux"


class _Descriptor(Document):
    media_type: str = Field(default="", alias="mediaType")
    digest: str
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Index(Document):
    manifests: tuple[_Descriptor, ...]


class _Manifest(Document):
    config: _Descriptor
    layers: tuple[_Descriptor, ...]


def read_layout(layout: Written, name: str | None, arch: str) -> Image:
    """The image in a layout for an architecture.

    Args:
        name: its tag, of several.

    Raises:
        InputError: the layout has no such image, or is damaged.
        EnvironmentLack: a layer needs a program that is missing.
    """
    index = read(layout, "index.json", _Index)
    named = [m for m in index.manifests if name in (None, (m.annotations or {}).get(_NAME))]
    if not index.manifests:
        raise InputError(f"{layout.path} has no image: its index.json lists none", AGAIN)
    known = sorted({(m.annotations or {}).get(_NAME, "") for m in index.manifests} - {""})
    if not named:
        raise InputError(
            f"{layout.path} has no image `{name}`", "known: " + ", ".join(known or ["none"])
        )
    found = {}
    offered = []
    for descriptor in _manifests(layout, named, 0):
        # `docker save` lists those for other machines, too, without what is in them.
        elsewhere = descriptor.platform and descriptor.platform.architecture
        if elsewhere and elsewhere != wanted(arch):
            offered.append(elsewhere)
            continue
        manifest = _read(layout, descriptor, _Manifest)
        config = _read(layout, manifest.config, Config)
        offered.append(config.architecture)
        if config.is_for(arch):
            found[descriptor.digest] = (manifest, config)
    if not offered:
        raise InputError(f"{layout.path} has no image for Linux: its indexes list none", AGAIN)
    if not found:
        raise InputError(
            f"{layout.path} has no image for linux/{wanted(arch)}, only for "
            + ", ".join(sorted(set(offered)))
        )
    if len(found) > 1:
        raise InputError(
            f"{layout.path} has {len(found)} images for linux/{wanted(arch)}",
            f'name one: `image = "{layout.path.name}:{known[0]}"`; known: {", ".join(known)}'
            if name is None and known
            else "write one of them, such as a variant of the processor, to a layout of its own",
        )
    ((manifest, config),) = found.values()
    return config.image(*lay(layout, (_layer(layout, each) for each in manifest.layers)))


def _manifests(
    layout: Written, descriptors: list[_Descriptor], depth: int
) -> Iterator[_Descriptor]:
    """The manifests of images, also those that an index inside of the index lists."""
    if depth > _MAX_DEPTH:
        raise InputError(f"{layout.path}: its indexes refer to each other")
    for each in descriptors:
        if each.media_type.endswith(("image.index.v1+json", "manifest.list.v2+json")):
            inner = _read(layout, each, _Index)
            yield from _manifests(layout, list(inner.manifests), depth + 1)
        elif each.platform is None or each.platform.os == "linux":
            yield each


def _read(layout: Written, descriptor: _Descriptor, model: type[AnyDocument]) -> AnyDocument:
    return read(layout, _blob(layout, descriptor), model)


def _layer(layout: Written, descriptor: _Descriptor) -> Layer:
    digest = sha256_of(layout, descriptor.digest)
    # It is checked when the layer enters the cache.
    name = _blob(layout, descriptor, check=not (cache() / f"{digest}.tar").is_file())
    return Layer(name, descriptor.digest[:19], digest)


def _blob(layout: Written, descriptor: _Descriptor, check: bool = True) -> str:
    """The path of what a descriptor stands for, in the layout."""
    digest = sha256_of(layout, descriptor.digest)
    name = f"blobs/sha256/{digest}"
    with layout.open(name) as file:
        if check and file_digest(file, "sha256").hexdigest() != digest:
            raise InputError(
                f"{layout.path}: {name} is damaged: its SHA-256 is not its name", COPY_AGAIN
            )
    return name
