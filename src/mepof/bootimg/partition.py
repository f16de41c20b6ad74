"""Whether an image fits into its partition, by how much it does not, and what would fit."""

from __future__ import annotations

from dataclasses import dataclass

from mepof.bootimg import mediatek
from mepof.bootimg.avb import BLOCK_BYTES, FOOTER_BYTES, footer_of
from mepof.bootimg.compression import compress
from mepof.bootimg.image import BootImage
from mepof.bootimg.kernel import decompressed, describe
from mepof.bootimg.layout import round_up
from mepof.bootimg.model import Model
from mepof.bootimg.summary import kind_of


@dataclass(frozen=True)
class Fit:
    """An image and its partition, in bytes.

    Attributes:
        needed: with what Android Verified Boot keeps behind the image.
        largest_kernel: that the image can hold instead of its own, as compressed as it would be.
        compressions: what is needed with the kernel compressed otherwise; only of an image that
            does not fit.
        image_limit: bytes of a kernel's image, decompressed, that would fit if it is compressed as
            well as this one; only of an image that does not fit.
    """

    partition: str
    size: int
    needed: int
    largest_kernel: int | None
    compressions: dict[str, int]
    image_limit: int | None = None

    @property
    def excess(self) -> int:
        """Bytes by which the image is too large; 0 if it fits."""
        return max(self.needed - self.size, 0)


def fit(image: BootImage, model: Model) -> Fit | None:
    """Compare an image with its partition; None if the model does not state its size.

    Raises:
        InputError: the kernel cannot be decompressed.
        EnvironmentLack: a program that compresses it is missing.
    """
    partition = kind_of(image)
    size = model.partitions.get(partition)
    if size is None:
        return None
    content = image.content_size
    footer = footer_of(image.tail, content)
    behind = footer.vbmeta_size + FOOTER_BYTES if footer else 0

    def needed(content: int) -> int:
        return (round_up(content, BLOCK_BYTES) if footer else content) + behind

    section = image.section("kernel")
    compressions = {}
    largest = limit = None
    if section:
        others = content - round_up(len(section), image.page_size)
        space = (size - behind) // BLOCK_BYTES * BLOCK_BYTES if footer else size
        largest = max((space - others) // image.page_size * image.page_size, 0)
    if needed(content) > size and section and largest is not None:
        kernel = describe(section)
        plain = decompressed(kernel, "the kernel")
        for name in model.compressions:
            if name != kernel.compression:
                other = mediatek.joined(kernel.mediatek, compress(plain, name), kernel.trees)
                compressions[name] = needed(image.with_sections(kernel=other).content_size)
        payload = len(kernel.payload)
        room = max(largest - (len(section) - payload), 0)
        limit = len(plain) * room // payload
    return Fit(partition, size, needed(content), largest, compressions, limit)
