"""Bootable kernel images, recognised by their headers.

Formats: x86, Documentation/arch/x86/boot.rst of Linux 6.12 (boot_flag, header); arm64,
Documentation/arch/arm64/booting.rst (magic); arm, arch/arm/boot/compressed/head.S (magic);
ELF, System V ABI (e_machine).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import InputError

HEADER_BYTES = 0x10000
"""How much of a file decides: the header of a compressed image is far within its first bytes."""

_GZIP = b"\x1f\x8b"
_ELF = b"\x7fELF"
# By e_machine: what the same kernel build makes for booting.
_BOOTABLE_OF = {
    3: "arch/x86/boot/bzImage",
    40: "arch/arm/boot/zImage",
    62: "arch/x86/boot/bzImage",
    183: "arch/arm64/boot/Image",
}
_KNOWN = "bzImage of x86-64, Image or Image.gz of arm64, zImage of arm"


@dataclass(frozen=True)
class Image:
    """What a bootable image is.

    Attributes:
        format: ``bzImage``, ``Image``, ``Image.gz`` or ``zImage``, as the kernel's make calls it.
        arch: the architecture's G4 name.
    """

    format: str
    arch: str


def recognise(head: bytes) -> Image | None:
    """The image that begins with these bytes; None if it is not one.

    Args:
        head: the first :data:`HEADER_BYTES` of the file, or all of a shorter one.
    """
    if head[0x1FE:0x200] == b"\x55\xaa" and head[0x202:0x206] == b"HdrS":
        return Image("bzImage", "x86-64")
    if _is_arm64(head):
        return Image("Image", "arm64")
    if head[0x24:0x28] == b"\x18\x28\x6f\x01":
        return Image("zImage", "arm")
    if head[:2] == _GZIP and _is_arm64(_inflated(head)):
        return Image("Image.gz", "arm64")
    return None


def read_image(path: Path) -> Image:
    """Recognise a file.

    Raises:
        InputError: it cannot be read, or is not a bootable image; the remedy names the file to
            use.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", f"name a kernel image: {_KNOWN}")
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
        return f"{path} is empty", f"name a kernel image: {_KNOWN}"
    if head.startswith(_ELF):
        what = f"{path} is an ELF file, which cannot be booted"
        bootable = _BOOTABLE_OF.get(int.from_bytes(head[18:20], "little"))
        if bootable is None:
            return what, f"name a kernel image: {_KNOWN}"
        name = bootable.rpartition("/")[2]
        return what, f"use the {name} of the same build, {bootable}"
    if head.startswith(b"ANDROID!"):
        return f"{path} is an Android boot image", "unpack it and use the kernel in it"
    return f"{path} is not a bootable kernel image", f"name one: {_KNOWN}"


def _is_arm64(head: bytes) -> bool:
    return head[0x38:0x3C] == b"ARM\x64"


def _inflated(head: bytes) -> bytes:
    """The first bytes of a gzip file's content; none if it is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, 64)
    except zlib.error:
        return b""
