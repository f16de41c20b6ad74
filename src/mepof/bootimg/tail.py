"""What a partition holds behind a boot image, and where it goes when the image changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mepof.bootimg.avb import BLOCK_BYTES, FOOTER_BYTES, Footer, footer_of, rehashed
from mepof.bootimg.image import BootImage, Bytes, pages_of, split_cmdline, without_zeros
from mepof.bootimg.layout import round_up
from mepof.errors import InputError

SAMSUNG = b"SEANDROIDENFORCE"


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
        return Tail(size, without_zeros(view))
    start = footer.vbmeta_offset - content_size
    end = start + footer.vbmeta_size
    if start < 0 or without_zeros(view[end : len(view) - FOOTER_BYTES]):
        return None
    return Tail(size, without_zeros(view[:start]), bytes(view[start:end]), footer)


def with_tail(image: BootImage, tail: Tail, where: str, *, for_partition: bool = True) -> BootImage:
    """An image that has changed, with the tail moved to behind it.

    The vbmeta keeps its signature, which no longer fits; one without gets the new hash. Only a file
    with a footer is as large as its partition; any other one grows.

    Args:
        where: the image's name, for messages.
        for_partition: whether it must fit into the partition that the file before is as large as;
            an image that is booted from memory need not.

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
    if tail.footer is not None and for_partition and needed > tail.size:
        raise InputError(
            f"{where}: the image with its AVB data has {needed} bytes, {needed - tail.size} more "
            f"than the {tail.size} of the file before, which is as large as the partition",
            "compress the kernel better (`--compression xz`, if the boot loader can), or "
            "instrument less of it (`set exclude`)",
        )
    tail = replace(tail, size=max(tail.size, needed))
    return replace(image, tail=tail.encode(content_size))


def with_changes(
    image: BootImage,
    sections: Mapping[str, Bytes],
    cmdline: str | None,
    where: Path,
    *,
    for_partition: bool = True,
) -> BootImage:
    """The image with other sections and another command line, and its tail behind them.

    Args:
        where: the image's path, for messages.
        for_partition: as :func:`with_tail` takes it.

    Raises:
        InputError: the tail cannot be moved, the command line is too long, or the partition is
            too small.
    """
    if not sections and cmdline is None:
        return image
    size = image.content_size
    tail = tail_of(image.tail, size)
    if tail is None:
        raise InputError(
            f"{where}: what follows the image cannot be moved: its AVB footer does not fit it",
            "unpack it, remove `raw_tail` from the description, and pack the directory",
        )
    result = image.with_sections(**sections)
    if cmdline is not None:
        fields = split_cmdline(cmdline.encode(), image.layout)
        if fields is None:
            raise InputError(
                f"the command line has {len(cmdline.encode())} bytes, more than a header of "
                f"version {image.version} holds"
            )
        result = replace(result, fields={**result.fields, **fields})
    if len(image.tail) == 0:
        return result
    return with_tail(result, tail, str(where), for_partition=for_partition)
