"""The headers of boot images, field by field: versions 0 to 4, and vendor_boot 3 and 4."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["boot", "vendor_boot"]
Value = int | bytes

BOOT_MAGIC = b"ANDROID!"
VENDOR_MAGIC = b"VNDRBOOT"
PAGE_SIZES = tuple(1 << shift for shift in range(11, 18))
"""What old headers are known to have; mkbootimg writes the first four."""

GENERIC_PAGE_SIZE = 4096
"""Of versions 3 and 4, whose header does not state it."""

# Before version 3, where the command line goes on after the id.
CMDLINE_BYTES = 512
EXTRA_CMDLINE_BYTES = 1024


@dataclass(frozen=True)
class Layout:
    """The fields of one header, little-endian and packed.

    Attributes:
        fields: name and format (of :mod:`struct`) of each, in order.
        sections: what follows the header, in order; the header has the size of each in the field
            ``NAME_size``.
    """

    kind: Kind
    version: int
    fields: tuple[tuple[str, str], ...]
    sections: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of the header."""
        return self._struct.size

    @cached_property
    def _struct(self) -> struct.Struct:
        return struct.Struct("<" + "".join(form for _, form in self.fields))

    @cached_property
    def names(self) -> frozenset[str]:
        """Of all fields."""
        return frozenset(name for name, _ in self.fields)

    @cached_property
    def computed(self) -> frozenset[str]:
        """The fields that follow from everything else."""
        sizes = {name for name in self.names if name.endswith("_size")} - {"page_size"}
        return frozenset({*sizes, "magic", "header_version", "ramdisk_table_entries"})

    def decode(self, head: bytes | memoryview) -> dict[str, Value]:
        """The fields of a header that is as long as :attr:`size`, or longer."""
        values = self._struct.unpack_from(head)
        return {name: value for (name, _), value in zip(self.fields, values, strict=True)}

    def encode(self, values: Mapping[str, Value]) -> bytes:
        """The header with these fields; texts are filled up with zeros."""
        return self._struct.pack(*(values[name] for name, _ in self.fields))


_OLD = (
    ("magic", "8s"),
    ("kernel_size", "I"),
    ("kernel_address", "I"),
    ("ramdisk_size", "I"),
    ("ramdisk_address", "I"),
    ("second_size", "I"),
    ("second_address", "I"),
    ("tags_address", "I"),
    ("page_size", "I"),
    ("header_version", "I"),
    ("os_version", "I"),
    ("name", "16s"),
    ("cmdline", "512s"),
    ("id", "32s"),
    ("extra_cmdline", "1024s"),
)
# Qualcomm's boot loaders of before header versions have the size of a table of device trees there.
_WITH_TABLE = tuple(("dt_size" if name == "header_version" else name, form) for name, form in _OLD)
_RECOVERY = (("recovery_dtbo_size", "I"), ("recovery_dtbo_offset", "Q"), ("header_size", "I"))
_DTB = (("dtb_size", "I"), ("dtb_address", "Q"))
_GENERIC = (
    ("magic", "8s"),
    ("kernel_size", "I"),
    ("ramdisk_size", "I"),
    ("os_version", "I"),
    ("header_size", "I"),
    ("reserved", "16s"),
    ("header_version", "I"),
    ("cmdline", "1536s"),
)
_VENDOR = (
    ("magic", "8s"),
    ("header_version", "I"),
    ("page_size", "I"),
    ("kernel_address", "I"),
    ("ramdisk_address", "I"),
    ("vendor_ramdisk_size", "I"),
    ("cmdline", "2048s"),
    ("tags_address", "I"),
    ("name", "16s"),
    ("header_size", "I"),
    *_DTB,
)
_FRAGMENTS = (
    ("ramdisk_table_size", "I"),
    ("ramdisk_table_entries", "I"),
    ("ramdisk_table_entry_size", "I"),
    ("bootconfig_size", "I"),
)
_PARTS = ("kernel", "ramdisk", "second")

BOOT = (
    Layout("boot", 0, _OLD, _PARTS),
    Layout("boot", 1, (*_OLD, *_RECOVERY), (*_PARTS, "recovery_dtbo")),
    Layout("boot", 2, (*_OLD, *_RECOVERY, *_DTB), (*_PARTS, "recovery_dtbo", "dtb")),
    Layout("boot", 3, _GENERIC, ("kernel", "ramdisk")),
    Layout("boot", 4, (*_GENERIC, ("signature_size", "I")), ("kernel", "ramdisk", "signature")),
)
BOOT_WITH_TABLE = Layout("boot", 0, _WITH_TABLE, (*_PARTS, "dt"))
VENDOR = {
    3: Layout("vendor_boot", 3, _VENDOR, ("vendor_ramdisk", "dtb")),
    4: Layout(
        "vendor_boot",
        4,
        (*_VENDOR, *_FRAGMENTS),
        ("vendor_ramdisk", "dtb", "ramdisk_table", "bootconfig"),
    ),
}

FRAGMENT = struct.Struct("<3I32s16I")
"""An entry of the table of ramdisk fragments: size, offset, type, name, board ID."""

FRAGMENT_TYPES = ("none", "platform", "recovery", "dlkm")


def layout_of(kind: Kind, version: int, dt: bool = False) -> Layout | None:
    """The header of a kind and version; None if there is none.

    Args:
        dt: whether a table of device trees takes the version's field (version 0 only).
    """
    if kind == "vendor_boot":
        return VENDOR.get(version)
    if dt:
        return BOOT_WITH_TABLE if version == 0 else None
    return BOOT[version] if version in range(len(BOOT)) else None


def round_up(size: int, page_size: int) -> int:
    """Bytes of the pages that ``size`` bytes take."""
    return -(-size // page_size) * page_size
