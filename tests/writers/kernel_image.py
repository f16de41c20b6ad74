"""The parts of image headers by which bootable and other images are recognised."""

from __future__ import annotations

import gzip


def at(offset: int, *parts: tuple[int, bytes], size: int = 1024) -> bytes:
    """Zeros, with bytes at given offsets from ``offset``."""
    image = bytearray(size)
    for position, data in parts:
        image[offset + position : offset + position + len(data)] = data
    return bytes(image)


def bz_image() -> bytes:
    """A bzImage: ``boot_flag`` and ``header`` of the boot protocol."""
    return at(0x1F1, (0x0D, b"\x55\xaa"), (0x11, b"HdrS"))


def whole_bz_image() -> bytes:
    """A bzImage of 10,496 bytes, as its header states: ``setup_sects`` and ``syssize``."""
    header = (0, b"\x01"), (3, (592).to_bytes(4, "little"))
    return at(0x1F1, *header, (0x0D, b"\x55\xaa"), (0x11, b"HdrS"), size=1024 + 592 * 16)


def efi_image() -> bytes:
    """An Image of arm64 with an EFI stub, whose section ends with it, at 8,192 bytes."""
    header = (0x40, b"PE\0\0"), (0x46, b"\1\0"), (0x54, bytes(2))
    section = (0x58 + 16, (4096).to_bytes(4, "little") * 2)
    pe = (0x3C, (0x40).to_bytes(4, "little"))
    return at(0, (0, b"MZ"), (0x38, b"ARM\x64"), pe, *header, section, size=8192)


def arm64_image() -> bytes:
    """An Image of arm64: its magic."""
    return at(0, (0x38, b"ARM\x64"))


def gzipped(data: bytes) -> bytes:
    """Data compressed as ``make Image.gz`` does."""
    return gzip.compress(data, mtime=0)


def arm_image() -> bytes:
    """A zImage of arm: its magic."""
    return at(0, (0x24, (0x016F2818).to_bytes(4, "little")))


def elf(machine: int) -> bytes:
    """The beginning of an ELF file for a machine, as vmlinux is."""
    return at(0, (0, b"\x7fELF\x02\x01\x01"), (18, machine.to_bytes(2, "little")))
