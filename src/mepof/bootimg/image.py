"""A boot image in memory, and the bytes that it stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mepof.bootimg.layout import (
    BOOT_MAGIC,
    CMDLINE_BYTES,
    EXTRA_CMDLINE_BYTES,
    FRAGMENT,
    GENERIC_PAGE_SIZE,
    VENDOR_MAGIC,
    Kind,
    Layout,
    Value,
    round_up,
)

Bytes = bytes | memoryview
_STEP = 1 << 20


@dataclass(frozen=True)
class Fragment:
    """A part of the vendor ramdisk.

    Attributes:
        type: an index of ``FRAGMENT_TYPES``, or a number of the vendor's own.
        name: 32 bytes, as in the table.
        board: the board ID, 16 words.
    """

    size: int
    type: int
    name: bytes
    board: tuple[int, ...]


@dataclass(frozen=True)
class BootImage:
    """A boot or vendor_boot image.

    Attributes:
        fields: of the header, except for sizes and whatever else is computed.
        sections: name and content of what follows the header; all of the layout's, except for
            the table of fragments.
        fragments: of the vendor ramdisk, of vendor_boot 4 only; they cover it.
        paddings: what fills the last page of the header (``header``) or of a section, where it is
            not zeros up to the end of the page.
        tail: what follows the last page.
    """

    layout: Layout
    fields: Mapping[str, Value]
    sections: Mapping[str, Bytes]
    fragments: tuple[Fragment, ...] = ()
    paddings: Mapping[str, bytes] = field(default_factory=dict)
    tail: Bytes = b""

    @property
    def kind(self) -> Kind:
        """``boot`` or ``vendor_boot``."""
        return self.layout.kind

    @property
    def version(self) -> int:
        """Of the header."""
        return self.layout.version

    @property
    def page_size(self) -> int:
        """In bytes."""
        return self.number("page_size") if "page_size" in self.fields else GENERIC_PAGE_SIZE

    def number(self, name: str) -> int:
        """A numeric field; 0 if the header does not have it."""
        value = self.fields.get(name, 0)
        return value if isinstance(value, int) else 0

    def text(self, name: str) -> bytes:
        """A field of text; empty if the header does not have it."""
        value = self.fields.get(name, b"")
        return value if isinstance(value, bytes) else b""

    def section(self, name: str) -> Bytes:
        """A section; empty if there is none."""
        return self.sections.get(name, b"")

    @property
    def cmdline(self) -> bytes:
        """The kernel's parameters, up to the zero that ends them."""
        parts = (self.text("cmdline"), self.text("extra_cmdline"))
        return b"".join(part.split(b"\0", 1)[0] for part in parts)

    @property
    def content_size(self) -> int:
        """Bytes up to the tail."""
        return sum(map(len, pages_of(self)))

    def with_sections(self, **changed: Bytes) -> BootImage:
        """The image with other sections. Paddings that no longer fit become zeros."""
        fits = {
            name: padding
            for name, padding in self.paddings.items()
            if name not in changed or len(changed[name]) == len(self.section(name))
        }
        return replace(self, sections={**self.sections, **changed}, paddings=fits)


def pages_of(image: BootImage) -> list[Bytes]:
    """The header and the sections, each filled up to whole pages."""
    pages: list[Bytes] = []
    for name in ("header", *image.layout.sections):
        data = _header(image) if name == "header" else _content(image, name)
        pages += [data, _padding(image, name, len(data))]
    return pages


def write(image: BootImage) -> bytes:
    """The bytes of an image, with its tail."""
    return b"".join([*pages_of(image), image.tail])


def _padding(image: BootImage, name: str, size: int) -> bytes:
    wanted = round_up(size, image.page_size) - size
    kept = image.paddings.get(name)
    if kept is None or len(kept) > wanted:
        return bytes(wanted)
    parts = ("header", *image.layout.sections)
    # Only the last part that is not empty may end within a page.
    is_last = not any(len(_content(image, each)) for each in parts[parts.index(name) + 1 :])
    return kept if len(kept) == wanted or is_last else bytes(wanted)


def _content(image: BootImage, name: str) -> Bytes:
    if name != "ramdisk_table":
        return image.section(name)
    entries = []
    offset = 0
    for each in image.fragments:
        entries.append(FRAGMENT.pack(each.size, offset, each.type, each.name, *each.board))
        offset += each.size
    return b"".join(entries)


def _header(image: BootImage) -> bytes:
    layout = image.layout
    values: dict[str, Value] = {
        "magic": BOOT_MAGIC if image.kind == "boot" else VENDOR_MAGIC,
        "header_version": image.version,
        "header_size": layout.size,
        "recovery_dtbo_offset": recovery_offset(image) if image.section("recovery_dtbo") else 0,
        "ramdisk_table_entries": len(image.fragments),
        "ramdisk_table_entry_size": FRAGMENT.size,
        "id": b"",
        **{f"{name}_size": len(_content(image, name)) for name in layout.sections},
    }
    if image.version < 3:
        values["id"] = digest_of(image)
    return layout.encode({**values, **image.fields})


def recovery_offset(image: BootImage) -> int:
    """Where version 1 and 2 have the recovery's dtbo."""
    before = (len(image.section(name)) for name in ("kernel", "ramdisk", "second"))
    return image.page_size + sum(round_up(size, image.page_size) for size in before)


def digest_of(image: BootImage) -> bytes:
    """The ``id`` of headers before version 3: a hash of every section and its size."""
    digest = hashlib.sha1(usedforsecurity=False)
    for name in image.layout.sections:
        data = image.section(name)
        digest.update(data)
        digest.update(len(data).to_bytes(4, "little"))
    return digest.digest()


def split_cmdline(text: bytes, layout: Layout) -> dict[str, bytes] | None:
    """The fields that hold a command line; None if it is too long.

    Before version 3 the second field goes on where the first one, and its zero, end.
    """
    size = next(int(form[:-1]) for name, form in layout.fields if name == "cmdline")
    if layout.version >= 3:
        return {"cmdline": text.ljust(size, b"\0")} if len(text) < size else None
    if len(text) > CMDLINE_BYTES + EXTRA_CMDLINE_BYTES - 2:
        return None
    head, rest = text[: CMDLINE_BYTES - 1], text[CMDLINE_BYTES - 1 :]
    return {
        "cmdline": head.ljust(CMDLINE_BYTES, b"\0"),
        "extra_cmdline": rest.ljust(EXTRA_CMDLINE_BYTES, b"\0"),
    }


def without_zeros(view: memoryview) -> bytes:
    """Data without the zeros that end it, of which a partition may have many."""
    end = len(view)
    while end:
        kept = len(bytes(view[max(end - _STEP, 0) : end]).rstrip(b"\0"))
        end = max(end - _STEP, 0) + kept
        if kept:
            break
    return bytes(view[:end])
