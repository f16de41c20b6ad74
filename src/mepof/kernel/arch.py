"""The architectures that a kernel can be built for, by their G4 names."""

from __future__ import annotations

from dataclasses import dataclass

from mepof.errors import InputError


@dataclass(frozen=True)
class Arch:
    """How kbuild calls an architecture and its bootable image.

    Attributes:
        make: value of ``ARCH=``.
        source: directory under ``arch/``.
        triple: what Clang calls it.
        target: make target of the bootable image.
        image: path of that image in the build directory.
    """

    name: str
    make: str
    source: str
    triple: str
    target: str
    image: str


_ALL = (
    Arch("x86-64", "x86_64", "x86", "x86_64-linux-gnu", "bzImage", "arch/x86/boot/bzImage"),
    Arch("arm64", "arm64", "arm64", "aarch64-linux-gnu", "Image", "arch/arm64/boot/Image"),
    Arch("arm", "arm", "arm", "arm-linux-gnueabi", "zImage", "arch/arm/boot/zImage"),
)


def names() -> tuple[str, ...]:
    """Every architecture's G4 name."""
    return tuple(arch.name for arch in _ALL)


def get(name: str) -> Arch:
    """The architecture of that name.

    Raises:
        InputError: there is none.
    """
    for arch in _ALL:
        if arch.name == name:
            return arch
    raise InputError(f"unknown architecture `{name}`", "known: " + ", ".join(names()))
