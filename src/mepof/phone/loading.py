"""What a boot loader hands to the processor: kernel, ramdisk and command line of an image.

The order of the ramdisks and the form of the bootconfig are those of AOSP's
``system/tools/mkbootimg/include/bootimg/bootimg.h`` and the kernel's
``Documentation/admin-guide/bootconfig.rst``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mepof.bootimg.image import BootImage
from mepof.bootimg.kernel import decompressed, describe
from mepof.device.initramfs import Entry, archive, tree

_ALIGNMENT = 512
_RECOVERY = 2
_BOOTCONFIG_MAGIC = b"#BOOTCONFIG\n"


@dataclass(frozen=True)
class Loaded:
    """What is in memory when a kernel is started.

    Attributes:
        start: ``ram``, ``a`` or ``b``.
        slot: whose partitions the kernel is told to use.
        arch: of the kernel; None for one that mepof does not know.
    """

    start: str
    slot: str
    arch: str | None
    kernel: bytes
    ramdisk: bytes
    cmdline: str


def load(
    boot: BootImage, vendor: BootImage | None, init: BootImage | None, start: str, slot: str
) -> Loaded:
    """Take images apart as a boot loader does.

    Args:
        vendor: with header version 3 and 4.
        init: the image of ``init_boot``, where the phone has one.
        start: ``ram``, ``a`` or ``b``.
        slot: the active one.

    Raises:
        InputError: the kernel cannot be decompressed.
        EnvironmentLack: the program that decompresses it is missing.
    """
    described = describe(boot.section("kernel"))
    kernel = bytes(decompressed(described, "the kernel"))
    image = described.image or describe(kernel).image
    ramdisks = [_vendor_ramdisk(vendor), bytes(boot.section("ramdisk"))]
    if init is not None:
        ramdisks[1] = bytes(init.section("ramdisk"))
    bootconfig = bytes(vendor.section("bootconfig")) if vendor else b""
    words = [boot.cmdline, vendor.cmdline if vendor else b""]
    return Loaded(
        start=start,
        slot=slot,
        arch=image.arch if image else None,
        kernel=kernel,
        ramdisk=b"".join(_aligned(each) for each in ramdisks) + _bootconfig(bootconfig),
        cmdline=" ".join(
            [word.decode("utf-8", "replace") for word in words if word]
            + (["bootconfig"] if bootconfig else [])
        ),
    )


def partitions_archive(contents: Mapping[str, bytes]) -> bytes:
    """An initramfs archive in which the system finds partitions below ``/partitions``.

    A kernel without block devices can read them, too.
    """
    entries = (Entry(f"partitions/{name}", 0o400, data) for name, data in contents.items())
    return archive(tree(entries))


def before(first: bytes, second: bytes) -> bytes:
    """Two ramdisks, the first unpacked first."""
    return _aligned(first) + second


def _vendor_ramdisk(vendor: BootImage | None) -> bytes:
    """The fragments of a vendor ramdisk that a normal boot uses."""
    if vendor is None:
        return b""
    whole = bytes(vendor.section("vendor_ramdisk"))
    if not vendor.fragments:
        return whole
    parts, at = [], 0
    for each in vendor.fragments:
        if each.type != _RECOVERY:
            parts.append(_aligned(whole[at : at + each.size]))
        at += each.size
    return b"".join(parts)


def _bootconfig(text: bytes) -> bytes:
    if not text:
        return b""
    padded = text + b"\0" * (-len(text) % 4)
    checksum = sum(padded) & 0xFFFFFFFF
    tail = len(padded).to_bytes(4, "little") + checksum.to_bytes(4, "little")
    return padded + tail + _BOOTCONFIG_MAGIC


def _aligned(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNMENT)
