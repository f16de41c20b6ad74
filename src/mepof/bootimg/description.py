"""The description of a boot image that people edit, and the header that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from mepof.bootimg.image import Bytes, split_cmdline
from mepof.bootimg.layout import PAGE_SIZES, Layout, Value, layout_of
from mepof.bootimg.text import parse_os_version
from mepof.described import Described
from mepof.errors import InputError

Word32 = Annotated[int, Field(ge=0, lt=1 << 32)]
Word64 = Annotated[int, Field(ge=0, lt=1 << 64)]
Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{2})*$")]
_Section = Literal[
    "kernel",
    "kernel_header",
    "kernel_dtb",
    "ramdisk",
    "second",
    "dt",
    "recovery_dtbo",
    "dtb",
    "signature",
    "vendor_ramdisk",
    "bootconfig",
]
NAME_BYTES = 16
FRAGMENT_NAME_BYTES = 32


class FragmentFile(Described):
    """A part of the vendor ramdisk, and its file."""

    file: str
    name: str = ""
    name_hex: Hex | None = None
    type: Literal["none", "platform", "recovery", "dlkm"] | Word32 = "none"
    board_id: tuple[Word32, ...] = Field((0,) * 16, min_length=16, max_length=16)


class TailFiles(Described):
    """What follows the image, as :class:`~mepof.bootimg.tail.Tail` has it."""

    partition_size: int = Field(gt=0)
    content_sha256: Hex
    extra: str | None = None
    vbmeta: str | None = None
    footer_minor: Word32 = 0
    vbmeta_offset: int = Field(0, ge=0)
    image_size: int = Field(0, ge=0)


class Description(Described):
    """``bootimg.toml``. Addresses default to mkbootimg's, file names to no such section."""

    kind: Literal["boot", "vendor_boot"] = "boot"
    header_version: int
    page_size: int = 2048
    kernel_address: Word32 = 0x10008000
    ramdisk_address: Word32 = 0x11000000
    second_address: Word32 = 0x10F00000
    tags_address: Word32 = 0x10000100
    dtb_address: Word64 = 0x11F00000
    os_version: str = ""
    os_patch_level: str = ""
    name: str = ""
    name_hex: Hex | None = None
    cmdline: str = ""
    cmdline_hex: Hex | None = None
    id: Hex | None = None
    reserved: Hex | None = None
    recovery_dtbo_offset: Word64 | None = None
    files: dict[_Section, str] = Field(default_factory=dict)
    fragments: tuple[FragmentFile, ...] = ()
    paddings: dict[_Section | Literal["header"], str] = Field(default_factory=dict)
    tail: TailFiles | None = None
    raw_tail: str | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> Description:
        layout = self.layout
        if self.page_size not in PAGE_SIZES:
            raise ValueError(f"page_size is {self.page_size}, not a power of 2 from 2048 on")
        names = set(layout.sections)
        if self.kind == "boot":
            names |= {"kernel_header", "kernel_dtb"}
        if layout.kind == "vendor_boot" and layout.version == 4:
            names -= {"vendor_ramdisk"}  # it consists of the fragments
        elif self.fragments:
            raise ValueError("only vendor_boot of version 4 has fragments")
        for name in self.files:
            if name not in names:
                raise ValueError(
                    f"{self.kind} of version {self.header_version} has no section `{name}`"
                )
        parse_os_version(self.os_version, self.os_patch_level)
        return self

    @property
    def layout(self) -> Layout:
        """Of the header.

        Raises:
            ValueError: there is none for this kind and version.
        """
        layout = layout_of(self.kind, self.header_version, "dt" in self.files)
        if layout is None:
            raise ValueError(f"{self.kind} has no header version {self.header_version}")
        return layout


def header_fields(
    described: Description, sections: Mapping[str, Bytes], path: Path
) -> dict[str, Value]:
    """The fields of the header that are not computed.

    Args:
        path: of the description, for messages.

    Raises:
        InputError: a text is too long.
    """
    layout = described.layout
    known = {name for name, _ in layout.fields}
    cmdline = split_cmdline(described.cmdline.encode(), layout)
    if cmdline is None:
        raise InputError(
            f"{path}: the command line has {len(described.cmdline.encode())} bytes, more than a "
            f"{layout.kind} header of version {layout.version} holds"
        )
    if described.cmdline_hex is not None:
        raw = bytes.fromhex(described.cmdline_hex)
        size = sum(map(len, cmdline.values()))
        if len(raw) != size:
            raise InputError(f"{path}: cmdline_hex has {len(raw)} bytes, not {size}")
        first = len(cmdline["cmdline"])
        cmdline = {key: raw[:first] if key == "cmdline" else raw[first:] for key in cmdline}
    os_version = parse_os_version(described.os_version, described.os_patch_level)
    fields: dict[str, Value] = {
        "page_size": described.page_size,
        "os_version": os_version,
        "name": field_bytes(described.name, described.name_hex, NAME_BYTES, path),
        "reserved": bytes.fromhex(described.reserved or ""),
        **cmdline,
    }
    for name in ("kernel", "ramdisk", "second", "tags", "dtb"):
        given = f"{name}_address" in described.model_fields_set
        # Without a ramdisk or second stage mkbootimg writes no address of it.
        absent = layout.kind == "boot" and name in ("ramdisk", "second") and not sections.get(name)
        address = getattr(described, f"{name}_address")
        fields[f"{name}_address"] = 0 if absent and not given else address
    fields = {name: value for name, value in fields.items() if name in known}
    if described.id is not None and "id" in known:
        fields["id"] = bytes.fromhex(described.id)
    if described.recovery_dtbo_offset is not None and "recovery_dtbo_offset" in known:
        fields["recovery_dtbo_offset"] = described.recovery_dtbo_offset
    return fields


def field_bytes(text: str, raw: str | None, size: int, path: Path) -> bytes:
    """A field of text, filled up with zeros.

    Args:
        raw: the field in hexadecimal, instead of the text.
        size: of the field, in bytes.

    Raises:
        InputError: it is too long.
    """
    data = text.encode() if raw is None else bytes.fromhex(raw)
    if len(data) > size - (raw is None):
        raise InputError(f"{path}: the name `{text or raw}` is longer than {size - 1} bytes")
    return data.ljust(size, b"\0")
