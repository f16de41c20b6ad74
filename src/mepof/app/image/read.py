"""The image that a description names, in any of the forms in which people have them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

from mepof.app.image import docker, oci
from mepof.app.image.model import Image
from mepof.app.image.root import read_root
from mepof.app.image.written import Tarball, Written, check_tarball, opened
from mepof.errors import InputError
from mepof.process import of_machine

# What may name an image in a registry, such as docker://ghcr.io/acme/shop:1.2; or else a path.
_REFERENCE = re.compile(r"^(?:\w+://)?([a-z0-9][\w./:@-]*)$")


@of_machine
@cache
def read_image(path: Path, name: str | None, arch: str) -> Image:
    """The image for an architecture that a directory or a tarball holds.

    Args:
        name: its tag, of several.

    Raises:
        InputError: it holds no such image, or is damaged.
        EnvironmentLack: it needs a program that is missing.
    """
    with opened(path) as files:
        return _read(files, name, arch).with_init_aside()


def _read(files: Written, name: str | None, arch: str) -> Image:
    path = files.path
    # Archives of `docker save` have had both since version 25.
    if files.has(oci.MARKER):
        return oci.read_layout(files, name, arch)
    if not isinstance(files, Tarball):
        raise _not_a_layout(path)
    if files.has(docker.MARKER):
        return docker.read_archive(files, name, arch)
    if name is not None:
        raise InputError(
            f"{path} is a root file system, which has no tag `{name}`",
            f'write `image = "{path.name}"`',
        )
    return read_root(files)


def check_image(path: Path) -> None:
    """Refuse at once what holds no image, without reading all of it.

    Raises:
        InputError: it does not; the remedy makes one of it.
    """
    if not path.is_dir():
        check_tarball(path)
    elif not (path / oci.MARKER).is_file():
        raise _not_a_layout(path)


def _not_a_layout(directory: Path) -> InputError:
    if (directory / docker.MARKER).is_file():
        return InputError(
            f"{directory} is an image as `podman save --format docker-dir` and skopeo's `dir:` "
            "write it, not an OCI image layout",
            f"skopeo copy dir:{directory} oci:{directory}-oci, and name {directory.name}-oci",
        )
    return InputError(
        f"{directory} is not an OCI image layout: it has no file {oci.MARKER}",
        f"pack a root file system: tar -C {directory} -cf {directory}.tar .; or write an image to "
        "another directory: skopeo copy docker-daemon:IMAGE oci:DIR",
    )


def registry_remedy(image: str, base: Path) -> str | None:
    """How to write an image to a layout below a directory; None if its name is not one of a
    registry's."""
    reference = _REFERENCE.match(image)
    if reference is None or ".tar" in PurePosixPath(image).suffixes:
        return None
    name = re.split("[:@]", PurePosixPath(reference[1]).name)[0]
    return (
        f"if a registry has it: skopeo copy docker://{reference[1]} oci:{base / name}, "
        f"and name {name}"
    )
