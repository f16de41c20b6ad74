"""Where a boot loader puts the parts of an image, and addresses at which they do not overlap.

What a kernel needs is in its header: Documentation/arch/arm64/booting.rst (``image_size``,
2 MiB), Documentation/arch/arm/booting.rst (a zImage decompresses itself to the start of memory),
Documentation/arch/x86/boot.rst (``init_size``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from mepof.bootimg.image import BootImage, Bytes
from mepof.bootimg.kernel import Kernel, decompressed, describe, memory_of
from mepof.bootimg.model import Model
from mepof.errors import InputError
from mepof.kernel.image import HEADER_BYTES
from mepof.kernel.image import recognise as recognise_image

_PAGE = 4096
_TAGS_BYTES = 16 << 10
# What arm's zImage may take if it does not say: "loaded above 32 MiB" avoids a relocation.
_ARM_DECOMPRESSED = 32 << 20
_WORD = 1 << 32


@dataclass(frozen=True)
class Region:
    """Bytes of memory that one part takes.

    Attributes:
        start: the address in the header; for a reserved region its own.
        alignment: of the addresses that can be chosen.
        offset: that a chosen address has beyond its alignment.
        strict: whether an address that is not aligned so is wrong.
    """

    name: str
    start: int
    size: int
    alignment: int = _PAGE
    offset: int = 0
    strict: bool = False

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.start + self.size

    def overlap(self, other: Region) -> int:
        """Bytes that two regions share."""
        return max(min(self.end, other.end) - max(self.start, other.start), 0)


@dataclass(frozen=True)
class Plan:
    """What a plan found.

    Attributes:
        regions: as the headers have them.
        problems: of these, a sentence each; none if the image can be loaded as it is.
        addresses: for every region, at which nothing overlaps; empty if there are none.
        kept: the address of the tags in the header, which stays where nothing is loaded there.
        moved: the regions that are elsewhere than the headers have them.
        largest_kernel: bytes of memory that a kernel can take beside the other parts.
        kernel_size: bytes of memory that this one takes.
        image_size: bytes of its image, decompressed if the boot loader decompresses it.
        compression: of the kernel, which the model does not list; None if it can be decompressed
            or the model lists none.
    """

    regions: tuple[Region, ...]
    problems: tuple[str, ...]
    addresses: dict[str, int]
    kept: dict[str, int]
    moved: tuple[str, ...]
    largest_kernel: int
    kernel_size: int
    image_size: int
    compression: str | None = None

    def placed(self, image: BootImage) -> BootImage:
        """An image with these addresses in its header."""
        fields = {f"{name}_address": at for name, at in self.addresses.items()}
        return replace(image, fields={**image.fields, **fields})

    def offsets(self, base: int) -> dict[str, int]:
        """Every address from a base, since `mkbootimg --base` moves those that it is not told;
        empty if there are none."""
        addresses = self.addresses | self.kept if self.fits else {}
        return {name: at - base for name, at in addresses.items()}

    @property
    def image_limit(self) -> int:
        """Bytes of an image that takes ``largest_kernel`` bytes of memory, at most.

        Counters are in the image as in memory. If it decompresses itself, it grows in proportion.
        """
        if self.regions[0].strict:
            return max(self.image_size - (self.kernel_size - self.largest_kernel), 0)
        return self.image_size * self.largest_kernel // self.kernel_size

    @property
    def fits(self) -> bool:
        """Whether there are addresses at which nothing overlaps."""
        return bool(self.addresses)


def plan(images: Sequence[BootImage], model: Model) -> Plan:
    """Check the addresses of images that are loaded together, and find better ones.

    Args:
        images: ``boot``, with ``vendor_boot`` and ``init_boot`` where the phone has them.

    Raises:
        InputError: no image has addresses or a kernel, several have one, or the kernel cannot be
            looked into.
        EnvironmentLack: the program that decompresses the kernel is missing.
    """
    header = _header(images)
    _check_together(images)
    kernel = describe(_kernel(images))
    regions, around, image_size = _regions(images, header, kernel, model)
    reserved = (Region(each.name, each.start, each.size) for each in model.memory.reserved)
    taken = (*around, *reserved)
    problems = tuple(_problems(regions, taken, model))
    addresses = _placed(regions, taken, model) if problems else {r.name: r.start for r in regions}
    moved = tuple(r.name for r in regions if addresses and addresses[r.name] != r.start)
    largest = _largest(regions, taken, model)
    known = not model.compressions or kernel.compression in model.compressions
    unknown = None if known else kernel.compression
    size = regions[0].size
    has_tags = "tags_address" in header.fields and all(r.name != "tags" for r in regions)
    kept = {"tags": header.number("tags_address")} if has_tags else {}
    return Plan(regions, problems, addresses, kept, moved, largest, size, image_size, unknown)


def _check_together(images: Sequence[BootImage]) -> None:
    """Refuse images that a boot loader does not load together."""
    for name in ("kernel", "vendor_ramdisk"):
        if sum(bool(image.section(name)) for image in images) > 1:
            raise InputError(
                f"more than one of the images has a {name}",
                "name the images that are loaded together: plan boot.img and recovery.img apart",
            )


def _header(images: Sequence[BootImage]) -> BootImage:
    """The image that has the addresses."""
    header = next((i for i in images if "kernel_address" in i.fields), None)
    if header is None:
        raise InputError(
            "boot images of version 3 and 4 have no addresses", "name vendor_boot.img as well"
        )
    return header


def _kernel(images: Sequence[BootImage]) -> Bytes:
    """The section of the kernel."""
    section = next((i.section("kernel") for i in images if i.section("kernel")), None)
    if section is None:
        raise InputError("none of the images has a kernel", "name boot.img as well")
    return section


def _regions(
    images: Sequence[BootImage], header: BootImage, kernel: Kernel, model: Model
) -> tuple[tuple[Region, ...], tuple[Region, ...], int]:
    """The parts with the kernel first, memory that none of them may take, and the bytes of the
    kernel's image."""
    found, around, size = _kernel_region(kernel, header.number("kernel_address"), model)
    regions = [found]

    def add(name: str, size: int, field: str) -> None:
        if size:
            regions.append(Region(name, header.number(field), size))

    ramdisks = ("vendor_ramdisk", "ramdisk", "bootconfig")
    add(
        "ramdisk",
        sum(len(image.section(name)) for image in images for name in ramdisks),
        "ramdisk_address",
    )
    add("second", len(header.section("second")), "second_address")
    tree = len(header.section("dtb"))
    if tree:
        add("dtb", tree + model.device_tree_growth, "dtb_address")
    else:
        trees = (*kernel.tree_sizes, _TAGS_BYTES)
        add("tags", max(trees) + model.device_tree_growth, "tags_address")
    return tuple(regions), around, size


def _kernel_region(
    kernel: Kernel, address: int, model: Model
) -> tuple[Region, tuple[Region, ...], int]:
    """The kernel in memory, the memory that it decompresses itself to, and the bytes of its
    image."""
    payload = len(kernel.payload)
    head, image = kernel.head, kernel.image
    loaded = payload
    if kernel.compression is not None:
        content = decompressed(kernel, "the kernel")
        loaded = len(content)
        head = bytes(content[:HEADER_BYTES])
        image = recognise_image(head)
    needs = memory_of(head, image)
    if needs is None:
        return Region("kernel", address, loaded), (), loaded
    if needs.decompresses:
        start = Region("decompressed kernel", model.start, _ARM_DECOMPRESSED)
        return Region("kernel", address, payload), (start,), loaded
    size = max(needs.size, loaded)
    strict = image is not None and image.arch == "arm64"
    return Region("kernel", address, size, needs.alignment, needs.offset, strict), (), loaded


def _problems(regions: Sequence[Region], around: Sequence[Region], model: Model) -> Iterator[str]:
    for index, region in enumerate(regions):
        span = f"{region.name} ({region.start:#x} to {region.end:#x})"
        if region.start < model.start or region.end > model.end:
            past = max(region.end - model.end, model.start - region.start)
            yield f"the {span} is {past} bytes outside of memory"
        if region.strict and (region.start - region.offset) % region.alignment:
            where = (
                f"{region.offset:#x} bytes after a multiple of" if region.offset else "aligned to"
            )
            yield f"the {span} is not {where} {region.alignment >> 20} MiB"
        for other in (*regions[index + 1 :], *around):
            shared = region.overlap(other)
            if shared:
                yield (
                    f"the {span} overlaps the {other.name} ({other.start:#x} to "
                    f"{other.end:#x}) by {shared} bytes"
                )


def _placed(regions: Sequence[Region], around: Sequence[Region], model: Model) -> dict[str, int]:
    """Addresses at which nothing overlaps, with as many as possible kept; empty if there are none.

    Trying every order finds addresses if there are any: parts that are moved down as far as they
    go, without one passing another, lie where the lowest fit in their order puts them.
    """
    for count in range(len(regions), -1, -1):
        for kept in combinations(regions, count):
            if any(True for _ in _problems(kept, around, model)):
                continue
            rest = [region for region in regions if region not in kept]
            for order in permutations(rest):
                taken = [*kept, *around]
                for region in order:
                    start = _lowest(region, taken, model)
                    if start is None:
                        break
                    taken.append(replace(region, start=start))
                else:
                    found = {each.name: each.start for each in taken}
                    return {region.name: found[region.name] for region in regions}
    return {}


def _lowest(region: Region, taken: Sequence[Region], model: Model) -> int | None:
    """The lowest address at which a region fits; None if it fits nowhere."""
    # mkbootimg keeps addresses in 32 bits, except for the device tree's.
    limit = model.end if region.name == "dtb" else min(model.end, _WORD)
    for start in sorted({model.start, *(each.end for each in taken)}):
        steps = -(-(start - region.offset) // region.alignment)
        at = steps * region.alignment + region.offset
        here = replace(region, start=at)
        if at >= model.start and here.end <= limit and not any(map(here.overlap, taken)):
            return at
    return None


def _largest(regions: Sequence[Region], around: Sequence[Region], model: Model) -> int:
    """Bytes of memory that a kernel can take beside the other parts, in whole pages."""
    kernel, *others = regions
    fits, too_large = 0, model.size // _PAGE + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        tried = replace(kernel, size=middle * _PAGE)
        if _placed((tried, *others), around, model):
            fits = middle
        else:
            too_large = middle
    return fits * _PAGE
