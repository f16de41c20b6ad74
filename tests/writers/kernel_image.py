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
