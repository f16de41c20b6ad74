"""Bootable kernel images, recognised by what the architectures' records say of their headers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from mepof import arch
from mepof.arch import Arch
from mepof.errors import InputError

HEADER_BYTES = 0x10000
"""How much of a file decides: the header of a compressed image is far within its first bytes."""

_GZIP = b"\x1f\x8b"
_ELF = b"\x7fELF"


@dataclass(frozen=True)
class Image:
    """What a bootable image is.

    Attributes:
        format: ``bzImage``, ``Image``, ``Image.gz``, ``zImage`` or ``linux``, as the kernel's make
            calls it.
        arch: the architecture's G4 name.
    """

    format: str
    arch: str


def recognise(head: bytes) -> Image | None:
    """The image that begins with these bytes; None if it is not one.

    Args:
        head: the first :data:`HEADER_BYTES` of the file, or all of a shorter one.
    """
    found = _of_header(head)
    if found is None and head.startswith(_GZIP):
        found = _of_header(_inflated(head))
        return Image(f"{found.target}.gz", found.name) if found and found.gzip else None
    return None if found is None else Image(found.target, found.name)


def read_image(path: Path) -> Image:
    """Recognise a file.

    Raises:
        InputError: it cannot be read, or is not a bootable image; the remedy names the file to
            use.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", f"name a kernel image: {_known()}")
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    image = recognise(head)
    if image is None:
        raise InputError(*_objection(path, head))
    return image


def _objection(path: Path, head: bytes) -> tuple[str, str]:
    """Why a file cannot be booted, and the remedy."""
    if not head:
        return f"{path} is empty", f"name a kernel image: {_known()}"
    if head.startswith(_ELF):
        what = f"{path} is an ELF file, which cannot be booted"
        machine = int.from_bytes(head[18:20], "little")
        built = next(
            (each for each in arch.records() if each.elf_machine == machine and not _is_elf(each)),
            None,
        )
        if built is None:
            return what, f"name a kernel image: {_known()}"
        return what, f"use the {built.target} of the same build, {built.image}"
    if head.startswith(b"ANDROID!"):
        return (
            f"{path} is an Android boot image",
            "unpack it with `mepof bootimg unpack --decompress` and use the kernel in it",
        )
    return f"{path} is not a bootable kernel image", f"name one: {_known()}"


def _of_header(head: bytes) -> Arch | None:
    """The architecture whose image begins so."""
    return next((a for a in arch.records() if all(m.is_in(head) for m in a.magic)), None)


def _is_elf(arch: Arch) -> bool:
    """Whether the image of an architecture is itself an ELF file."""
    return any(m.at == 0 and bytes.fromhex(m.data).startswith(_ELF) for m in arch.magic)


def _known() -> str:
    """The images of all architectures."""
    return ", ".join(
        f"{each.target}{f' or {each.target}.gz' if each.gzip else ''} of {each.name}"
        for each in arch.records()
    )


def _inflated(head: bytes) -> bytes:
    """The first bytes of a gzip file's content; none if it is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEADER_BYTES)
    except zlib.error:
        return b""
