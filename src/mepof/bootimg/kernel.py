"""The kernel in a boot image: how it is packed, what it needs in memory, and another in its place.

A kernel may stand in a header of MediaTek's, be compressed, and be followed by device trees.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from mepof.bootimg import mediatek
from mepof.bootimg.compression import (
    MAX_DECOMPRESSED,
    NAMES,
    Damaged,
    Truncated,
    compress,
    decode,
    decompress,
    recognise,
)
from mepof.bootimg.device_tree import appended
from mepof.bootimg.image import BootImage, Bytes, without_zeros
from mepof.bootimg.mistaken import mistaken
from mepof.errors import InputError
from mepof.kernel.image import HEADER_BYTES, Image, check_size
from mepof.kernel.image import recognise as recognise_image

# Documentation/arch/arm64/booting.rst.
_ARM64 = struct.Struct("<8xQQQ")
_TWO_MIB = 2 << 20
_BY_HAND = "unpack the image, make the file `kernel` by hand, and pack the directory"
# Documentation/arch/x86/boot.rst: init_size and kernel_alignment.
_X86_VERSION, _X86_ALIGNMENT, _X86_INIT_SIZE = 0x206, 0x230, 0x260
_X86_MIN_VERSION = 0x20A


@dataclass(frozen=True)
class Memory:
    """What a kernel asks of whoever loads it, in bytes.

    Attributes:
        size: from its first byte to the end of its BSS.
        alignment: of the address that ``offset`` is added to.
        decompresses: whether the kernel is an image that decompresses itself to elsewhere.
    """

    size: int
    alignment: int
    offset: int = 0
    decompresses: bool = False


@dataclass(frozen=True)
class Kernel:
    """A kernel as a boot image has it.

    Attributes:
        mediatek: the header of MediaTek's before it; empty without one.
        payload: the kernel, as compressed as it is.
        trees: what follows it, device trees.
        tree_sizes: of each of them.
        compression: of the payload; None if it is not compressed.
        head: the first bytes of the decompressed kernel; empty if they are not known here.
        image: None if mepof does not know the kernel's format.
    """

    mediatek: bytes
    payload: memoryview
    trees: memoryview
    tree_sizes: tuple[int, ...]
    compression: str | None
    head: bytes
    image: Image | None

    @property
    def memory(self) -> Memory | None:
        """What it asks of the boot loader; None if its format does not tell."""
        return memory_of(self.head, self.image)


def kernel_of(image: BootImage, what: str) -> Bytes:
    """The kernel section of an image whose kernel is to be replaced.

    Args:
        what: the image is, for messages.

    Raises:
        InputError: it has no kernel.
    """
    section = image.section("kernel")
    if not section:
        raise InputError(
            f"{what} has no kernel", "name the phone's boot.img, not its init_boot or vendor_boot"
        )
    return section


def describe(section: Bytes) -> Kernel:
    """What a kernel section consists of.

    A kernel compressed with zstd is not looked into: that takes another program.
    """
    header, view = mediatek.split(section)
    behind = appended(view)
    payload, trees = view[: behind.at], view[behind.at :]
    compression = recognise(payload)
    head = bytes(payload[:HEADER_BYTES])
    if compression is not None:
        try:
            decoded = decode(payload, HEADER_BYTES)
            head = decoded.content if decoded else b""
        except Damaged:
            head = b""
    name = compression.name if compression else None
    return Kernel(header, payload, trees, behind.sizes, name, head, recognise_image(head))


def memory_of(head: bytes, image: Image | None) -> Memory | None:
    """What a kernel asks of whoever loads it; None if its format does not tell.

    Args:
        head: the first bytes of the kernel, not compressed.
    """
    if image is None or len(head) < 0x268:
        return None
    if image.arch == "arm64":
        offset, size, _ = _ARM64.unpack_from(head)
        # Kernels before 3.17 do not state their size, and take an offset of 512 KiB.
        return Memory(size, _TWO_MIB, offset) if size else Memory(0, _TWO_MIB, 0x80000)
    if image.arch == "arm":
        start, end = struct.unpack_from("<II", head, 0x28)
        return Memory(max(end - start, 0), 4, 0, True)
    if image.arch == "x86-64":
        (version,) = struct.unpack_from("<H", head, _X86_VERSION)
        if version >= _X86_MIN_VERSION:
            (alignment,) = struct.unpack_from("<I", head, _X86_ALIGNMENT)
            (size,) = struct.unpack_from("<I", head, _X86_INIT_SIZE)
            return Memory(size, max(alignment, 4096))
    return None


def decompressed(kernel: Kernel, what: str) -> bytes | memoryview:
    """The kernel without its compression.

    Args:
        what: it is, for messages.

    Raises:
        InputError: it cannot be decompressed.
        EnvironmentLack: the program that decompresses it is missing.
    """
    return decompress(kernel.payload, what) if kernel.compression else kernel.payload


def check_replaceable(section: Bytes, where: str) -> None:
    """Refuse, before a kernel is built, a section in which it could not take the other's place.

    Args:
        where: the image's name, for messages.

    Raises:
        InputError: what stands around the kernel is not known, or mepof does not compress so.
    """
    kernel = describe(section)
    _check_form(kernel, where)
    _check_end(kernel, where)
    if kernel.compression not in (None, *NAMES):
        raise InputError(
            f"the kernel in {where} is compressed with {kernel.compression}, and mepof does not "
            "compress so",
            "make an image of it whose kernel is compressed as the boot loader takes, too: "
            f"`mepof bootimg pack {where} --kernel Image --compression gzip -o FILE`",
        )


def program_for(section: Bytes) -> str:
    """The program that compresses a kernel as the one of a section is; empty without one."""
    kind = recognise(describe(section).payload)
    return kind.program if kind else ""


def replaced(section: Bytes, new: Bytes, compression: str | None, what: str) -> bytes:
    """The section with another kernel: compressed, and followed by device trees, as the old one.

    Args:
        new: a kernel; one that ends with device trees of its own keeps these.
        compression: a name of :data:`mepof.bootimg.compression.NAMES` or ``none``; None for that
            of the old kernel.
        what: the new kernel is, for messages.

    Raises:
        InputError: it is not a kernel, or is for another architecture than the old one, or what
            stands around the old one is not known and would be lost.
        EnvironmentLack: the program that compresses or decompresses it is missing.
    """
    former, given = describe(section), _looked_into(describe(new), what)
    if compression is None:
        former = _looked_into(former, "the kernel in the image")
        _check_form(former)
        compression = (former.compression or "none") if len(former.payload) else None
    _check_end(former)
    if former.image and given.image and former.image.arch != given.image.arch:
        raise InputError(
            f"{what} is a kernel for {given.image.arch}, and the one in the image is for "
            f"{former.image.arch}",
            f"name a kernel for {former.image.arch}",
        )
    looked_into = given.head or given.compression is None
    if (former.image or not former.head) and looked_into and not given.image:
        instead, _ = mistaken(new)
        raise InputError(
            f"{what} is not a kernel that a boot loader starts, as the one in the image is"
            + (f", but {instead}" if instead else ""),
            "name the image that a build makes (Image, bzImage, zImage) or NAME.img of a run",
        )
    _check_whole(given, what)
    payload: Bytes = given.payload
    if compression is not None and compression != (given.compression or "none"):
        payload = decompressed(given, what)
        if compression != "none":
            payload = compress(payload, compression)
    return mediatek.joined(former.mediatek, payload, given.trees or former.trees)


def _looked_into(kernel: Kernel, what: str) -> Kernel:
    """The kernel with its head, also where another program decompresses it."""
    if kernel.compression != "zstd":
        return kernel
    head = bytes(decompressed(kernel, what)[:HEADER_BYTES])
    return replace(kernel, head=head, image=recognise_image(head))


def _check_whole(kernel: Kernel, what: str) -> None:
    """Refuse a kernel that is empty, damaged where it begins, or whose end is missing."""
    if not len(kernel.payload):
        raise InputError(f"{what} has no kernel", "name the image that a build makes")
    size: int | None = len(kernel.payload)
    if kernel.compression:
        try:
            decoded = decode(kernel.payload, MAX_DECOMPRESSED)
        except Truncated as error:
            raise InputError(
                f"the end of {what} is missing: {error}", "copy it again from the build"
            ) from error
        except Damaged as error:
            if not kernel.head:
                raise InputError(f"{what} cannot be decompressed: {error}") from error
            return
        size = len(decoded.content) if decoded and decoded.size is not None else None
    if kernel.image and size is not None:
        check_size(kernel.head, kernel.image, size, what)


def _check_form(kernel: Kernel, where: str = "the image") -> None:
    """Refuse to replace what is of no known form: a vendor's header before it would vanish."""
    if len(kernel.payload) and not kernel.compression and not kernel.image:
        raise InputError(
            f"the kernel in {where} begins like none that mepof knows, perhaps with a vendor's "
            f"header: {bytes(kernel.payload[:16])!r}",
            f"{_BY_HAND}, or say with --compression that the kernel stands for itself",
        )


def _check_end(kernel: Kernel, where: str = "the image") -> None:
    """Refuse to replace a compressed kernel with data behind it, which would vanish."""
    try:
        decoded = decode(kernel.payload, MAX_DECOMPRESSED) if kernel.compression else None
    except Damaged:
        return
    if decoded is None or decoded.size is None:
        return
    behind = without_zeros(kernel.payload[decoded.size :])
    # Kbuild appends it to what does not tell it, unlike gzip (scripts/Makefile.lib).
    size = without_zeros(memoryview(len(decoded.content).to_bytes(4, "little")))
    if behind not in (b"", size):
        raise InputError(
            f"{len(behind)} bytes behind the kernel in {where} are neither device trees nor zeros, "
            "and would be lost",
            _BY_HAND,
        )
