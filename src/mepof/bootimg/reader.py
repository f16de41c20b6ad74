"""Reading boot images: strict, and bounded by the size of the file.

Every section is a view of the file. Whatever is read can be written again to the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mepof.bootimg.image import BootImage, Bytes, Fragment, digest_of, recovery_offset
from mepof.bootimg.layout import (
    BOOT_MAGIC,
    FRAGMENT,
    GENERIC_PAGE_SIZE,
    PAGE_SIZES,
    VENDOR_MAGIC,
    Kind,
    Layout,
    Value,
    layout_of,
    round_up,
)
from mepof.bootimg.mistaken import mistaken
from mepof.errors import InputError

MAX_BYTES = 256 << 20
"""The largest file that is read: boot partitions have up to 192 MiB."""

MAX_FRAGMENTS = 1024


def read_file(path: Path, remedy: str = "name an image") -> memoryview:
    """The content of a file.

    Args:
        remedy: for one that cannot be read.

    Raises:
        InputError: it cannot be read, or is larger than :data:`MAX_BYTES`.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", remedy)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy) from error
    if len(data) > MAX_BYTES:
        what, remedy = mistaken(data)
        is_what = what or f"larger than {MAX_BYTES >> 20} MiB"
        raise InputError(f"{path} is {is_what}", remedy)
    return memoryview(data)


def parse(data: Bytes, where: str) -> BootImage:
    """Read an image.

    Args:
        where: the file's name, for messages.

    Raises:
        InputError: it is not a boot image, or a damaged one.
    """
    data = memoryview(data)
    layout = _layout(data, where)
    if len(data) < layout.size:
        raise InputError(
            f"{where} ends within its header: it has {len(data)} bytes of {layout.size}",
            "the file is truncated: copy it again",
        )
    values = layout.decode(data)
    page_size = int(values.get("page_size", GENERIC_PAGE_SIZE))
    if page_size not in PAGE_SIZES:
        raise InputError(f"{where}: the page size is {page_size}", _DAMAGED)
    if values.get("header_size", layout.size) != layout.size:
        raise InputError(
            f"{where}: the header says that it has {values['header_size']!r} bytes, but one of "
            f"version {layout.version} has {layout.size}",
            _DAMAGED,
        )
    image, at = _sections(data, layout, values, page_size, where)
    recovery = image.section("recovery_dtbo")
    if recovery and values["recovery_dtbo_offset"] != recovery_offset(image):
        raise InputError(f"{where}: the recovery dtbo is not where its offset says", _DAMAGED)
    fragments = _fragments(image, values, where)
    sections = {name: view for name, view in image.sections.items() if name != "ramdisk_table"}
    kept = {name: value for name, value in values.items() if name not in layout.computed}
    image = replace(image, fields=kept, sections=sections, fragments=fragments)
    # What is computed when the image is written stays out of the fields.
    if "id" in values and values["id"] == digest_of(image).ljust(32, b"\0"):
        image = replace(image, fields={k: v for k, v in kept.items() if k != "id"})
    if "recovery_dtbo_offset" in values and values["recovery_dtbo_offset"] == (
        recovery_offset(image) if recovery else 0
    ):
        remaining = {k: v for k, v in image.fields.items() if k != "recovery_dtbo_offset"}
        image = replace(image, fields=remaining)
    return replace(image, tail=data[at:])


_DAMAGED = "the image is damaged, or of a format that mepof does not know"


def _layout(data: memoryview, where: str) -> Layout:
    """The layout of the header that an image begins with."""
    magic = bytes(data[:8])
    if magic == VENDOR_MAGIC:
        kind: Kind = "vendor_boot"
        version = int.from_bytes(data[8:12], "little")
    elif magic == BOOT_MAGIC:
        kind = "boot"
        version = int.from_bytes(data[40:44], "little")
    else:
        what, remedy = mistaken(data)
        instead = f", but {what}" if what else ""
        raise InputError(f"{where} is not an Android boot image{instead}", remedy)
    layout = layout_of(kind, version)
    if layout is None and kind == "boot" and version >= min(PAGE_SIZES):
        # No version: the size of a table of device trees, which takes a page at least.
        layout = layout_of(kind, 0, dt=True)
    if layout is None:
        raise InputError(
            f"{where} has a {kind} header of version {version}",
            "mepof knows versions 0 to 4 of boot, and 3 and 4 of vendor_boot",
        )
    return layout


def _sections(
    data: memoryview, layout: Layout, values: Mapping[str, Value], page_size: int, where: str
) -> tuple[BootImage, int]:
    """The image with its sections and paddings, and where the tail begins."""
    sections: dict[str, Bytes] = {}
    paddings: dict[str, bytes] = {}
    at = 0
    for name in ("header", *layout.sections):
        size = layout.size if name == "header" else int(values[f"{name}_size"])
        if at + size > len(data):
            raise InputError(
                f"{where}: the {name} has {size} bytes from {at:#x}, and the file ends at "
                f"{len(data):#x}",
                "the file is truncated: copy it again",
            )
        if name != "header":
            sections[name] = data[at : at + size]
        end = min(at + round_up(size, page_size), len(data))
        padding = bytes(data[at + size : end])
        # Zeros that end early with the file are kept: not every tool fills the last page.
        if padding.count(0) != len(padding) or at + round_up(size, page_size) > len(data):
            paddings[name] = padding
        at = end
    return BootImage(layout, values, sections, (), paddings), at


def _fragments(image: BootImage, values: Mapping[str, Value], where: str) -> tuple[Fragment, ...]:
    """The entries of the table of ramdisk fragments, which must cover the ramdisk in order."""
    if "ramdisk_table" not in image.sections:
        return ()
    table = memoryview(image.section("ramdisk_table"))
    count, size = int(values["ramdisk_table_entries"]), int(values["ramdisk_table_entry_size"])
    if size != FRAGMENT.size or count > MAX_FRAGMENTS or count * size != len(table):
        raise InputError(
            f"{where}: the table of ramdisk fragments has {len(table)} bytes, and {count} entries "
            f"of {size}",
            _DAMAGED,
        )
    fragments: list[Fragment] = []
    end = 0
    for size, offset, number, name, *board in FRAGMENT.iter_unpack(table):
        if offset != end:
            raise InputError(
                f"{where}: ramdisk fragment {len(fragments)} begins at {offset:#x} of the "
                f"ramdisk, and the one before it ends at {end:#x}",
                _DAMAGED,
            )
        fragments.append(Fragment(size, number, name, tuple(board)))
        end += size
    if end != len(image.section("vendor_ramdisk")):
        raise InputError(
            f"{where}: the ramdisk fragments have {end} bytes together, and the ramdisk "
            f"{len(image.section('vendor_ramdisk'))}",
            _DAMAGED,
        )
    return tuple(fragments)
