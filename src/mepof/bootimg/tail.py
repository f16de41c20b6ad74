"""What a partition holds behind a boot image, and where it goes when the image changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mepof.bootimg.avb import BLOCK_BYTES, FOOTER_BYTES, Footer, footer_of, rehashed
from mepof.bootimg.image import BootImage, Bytes, pages_of
from mepof.bootimg.layout import round_up
from mepof.errors import InputError

SAMSUNG = b"SEANDROIDENFORCE"
_STEP = 1 << 20


@dataclass(frozen=True)
class Tail:
    """What follows an image.

    Attributes:
        size: bytes of the whole file, which is as large as the partition if there is a footer.
        extra: what follows directly, such as a vendor's mark; without the zeros behind it.
        vbmeta: Android Verified Boot's data; empty without a footer.
        footer: where that is.
    """

    size: int
    extra: bytes = b""
    vbmeta: bytes = b""
    footer: Footer | None = None

    def encode(self, content_size: int) -> bytes:
        """The bytes behind an image of ``content_size`` bytes."""
        if self.footer is None:
            return self.extra.ljust(self.size - content_size, b"\0")
        start = self.footer.vbmeta_offset - content_size
        body = (self.extra.ljust(start, b"\0") + self.vbmeta).ljust(
            self.size - content_size - FOOTER_BYTES, b"\0"
        )
        return body + self.footer.encode()


def tail_of(data: Bytes, content_size: int) -> Tail | None:
    """The tail that follows an image; None if it is of no form that can be moved.

    Args:
        data: the tail.
        content_size: bytes of the image before it.
    """
    view = memoryview(data)
    size = content_size + len(view)
    footer = footer_of(view, content_size)
    if footer is None:
        return Tail(size, _without_zeros(view))
    start = footer.vbmeta_offset - content_size
    end = start + footer.vbmeta_size
    if start < 0 or _without_zeros(view[end : len(view) - FOOTER_BYTES]):
        return None
    return Tail(size, _without_zeros(view[:start]), bytes(view[start:end]), footer)


def _without_zeros(view: memoryview) -> bytes:
    """Data without the zeros that end it, of which a partition may have many."""
    end = len(view)
    while end:
        kept = len(bytes(view[max(end - _STEP, 0) : end]).rstrip(b"\0"))
        end = max(end - _STEP, 0) + kept
        if kept:
            break
    return bytes(view[:end])


def with_tail(image: BootImage, tail: Tail, where: str) -> BootImage:
    """An image that has changed, with the tail moved to behind it.

    The vbmeta keeps its signature, which no longer fits; one without gets the new hash.

    Args:
        where: the image's name, for messages.

    Raises:
        InputError: the partition is too small.
    """
    content = b"".join([*pages_of(image), tail.extra])
    content_size = len(content) - len(tail.extra)
    needed = len(content)
    if tail.footer is not None:
        start = round_up(needed, BLOCK_BYTES)
        needed = start + len(tail.vbmeta) + FOOTER_BYTES
        vbmeta = rehashed(tail.vbmeta, content, where) if tail.vbmeta else b""
        footer = replace(tail.footer, image_size=len(content), vbmeta_offset=start)
        tail = replace(tail, vbmeta=vbmeta, footer=footer)
    if needed > tail.size:
        what = "image with its AVB data" if tail.footer else "image"
        raise InputError(
            f"{where}: the {what} has {needed} bytes, {needed - tail.size} more than the "
            f"{tail.size} of the file before, which is as large as the partition",
            "compress the kernel better (`--compression xz`, if the boot loader can), or "
            "instrument less of it (`set exclude`)",
        )
    return replace(image, tail=tail.encode(content_size))
