"""Bootable kernel images, recognised by what the architectures' records say of their headers."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mepof import arch
from mepof.arch import Arch
from mepof.errors import InputError

HEADER_BYTES = 0x10000
"""How much of a file decides: the header of a compressed image is far within its first bytes."""

_GZIP = b"\x1f\x8b"
# Documentation/arch/x86/boot.rst: setup_sects, where 0 means 4, and syssize.
_X86_SETUP, _X86_SYSSIZE = 0x1F1, 0x1F4
# Of arch/arm/boot/compressed/head.S: where a zImage is linked to start and to end.
_ARM_SPAN = struct.Struct("<40xII")
_PE_AT = 0x3C
_STEP = 1 << 20
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


def stated_size(head: bytes, image: Image) -> int:
    """Bytes that an image which is not compressed has at least, as its header states.

    Args:
        head: its first :data:`HEADER_BYTES`.

    Returns:
        0 if its header does not say; that of arm64 says it for a kernel with an EFI stub only.
    """
    try:
        if image.arch == "x86-64":
            (blocks,) = struct.unpack_from("<I", head, _X86_SYSSIZE)
            return ((head[_X86_SETUP] or 4) + 1) * 512 + blocks * 16 if blocks else 0
        if image.arch == "arm":
            start, end = _ARM_SPAN.unpack_from(head)
            return max(int(end) - int(start), 0)
        if image.arch == "arm64" and head.startswith(b"MZ"):
            return _end_of_sections(head)
    except struct.error:
        pass  # a header alone
    return 0


def _end_of_sections(head: bytes) -> int:
    """Where the last section of a PE file ends; 0 if it is none."""
    (at,) = struct.unpack_from("<I", head, _PE_AT)
    if head[at : at + 4] != b"PE\0\0":
        return 0
    count, optional = struct.unpack_from("<6xH12xH", head, at)
    table = at + 24 + optional
    spans = (struct.unpack_from("<II", head, table + 40 * n + 16) for n in range(count))
    return max((size + start for size, start in spans), default=0)


def check_size(head: bytes, image: Image, size: int, what: str) -> None:
    """Refuse a file whose end is missing.

    Args:
        head: the image's first bytes, not compressed.
        size: of the image, not compressed, in bytes.
        what: it is, for messages.

    Raises:
        InputError: its header states more bytes.
    """
    stated = stated_size(head, image)
    if size < stated:
        raise InputError(
            f"the end of {what} is missing: it has {size} bytes, and its header says {stated}",
            "copy it again from the build",
        )


def read_image(path: Path) -> Image:
    """Recognise a file.

    Raises:
        InputError: it cannot be read, is not a bootable image, or its end is missing; the remedy
            names the file to use.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", f"name a kernel image: {_known()}")
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
            image = recognise(head)
            if image is None:
                raise InputError(*_objection(path, head))
            file.seek(0)
            _check_end(file, image, head, path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return image


def _check_end(file: BinaryIO, image: Image, head: bytes, path: Path) -> None:
    """Check that a file has all bytes of its image."""
    if not head.startswith(_GZIP):
        check_size(head, image, path.stat().st_size, str(path))
        return
    decoder, size = zlib.decompressobj(wbits=31), 0
    try:
        while not decoder.eof:
            pending = file.read(_STEP)
            if not pending:
                raise InputError(
                    f"the end of {path} is missing: its gzip data ends too early",
                    "copy it again from the build",
                )
            while pending and not decoder.eof:
                size += len(decoder.decompress(pending, _STEP))
                pending = decoder.unconsumed_tail
    except zlib.error as error:
        raise InputError(f"{path} is damaged: {error}", "copy it again from the build") from error
    check_size(_inflated(head), image, size, str(path))


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
