"""Archives of `docker save` before version 25, and of `podman save`.

https://github.com/moby/docker-image-spec, "Combined Image JSON + Filesystem Changeset Format".
"""

from __future__ import annotations

from pydantic import Field, RootModel

from mepof.app.image.model import Config, Document, Image, wanted
from mepof.app.image.written import AGAIN, Layer, Written, lay, read, sha256_of
from mepof.errors import InputError

#: The file that every archive has.
MARKER = "manifest.json"


class _Entry(Document):
    config: str = Field(alias="Config")
    tags: tuple[str, ...] | None = Field(default=None, alias="RepoTags")
    layers: tuple[str, ...] = Field(alias="Layers")

    def is_called(self, name: str | None) -> bool:
        """Whether it has a tag: a whole one, or what comes after the image's name."""
        return name is None or any(name in (tag, tag.rpartition(":")[2]) for tag in self.tags or ())


class _Manifest(RootModel[tuple[_Entry, ...]]):
    pass


def read_archive(archive: Written, name: str | None, arch: str) -> Image:
    """The image in an archive.

    Args:
        name: its tag, of several.

    Raises:
        InputError: the archive has no such image, or is damaged.
        EnvironmentLack: a layer needs a program that is missing.
    """
    entries = read(archive, MARKER, _Manifest).root
    named = [each for each in entries if each.is_called(name)]
    if not entries:
        raise InputError(f"{archive.path} has no image: its {MARKER} lists none", AGAIN)
    if len(named) != 1:
        known = sorted(tag for each in entries for tag in each.tags or ())
        found = f"{len(named)} images" if named else f"no image `{name}`"
        raise InputError(
            f"{archive.path} has {found}",
            f'known: {", ".join(known or ["none"])}; name one: `image = "{archive.path.name}:TAG"`',
        )
    (entry,) = named
    config = read(archive, entry.config, Config)
    if not config.is_for(arch):
        raise InputError(
            f"{archive.path} has no image for linux/{wanted(arch)}, only for {config.architecture}"
        )
    digests = config.rootfs.diff_ids
    if len(digests) != len(entry.layers):
        raise InputError(
            f"{archive.path} has {len(entry.layers)} layers, and digests of {len(digests)}", AGAIN
        )
    layers = (
        Layer(name, name, sha256_of(archive, digest))
        for name, digest in zip(entry.layers, digests, strict=True)
    )
    return config.image(*lay(archive, layers, of_content=True))
