"""The sizes of user pages, by page tables of each architecture."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_size_t, c_uint32, c_uint64
from dataclasses import dataclass, field

import pytest

UNKNOWN = 0
KIB, MIB, GIB, TIB = (1 << shift for shift in (10, 20, 30, 40))


@dataclass
class Tables:
    """A guest's memory with page tables."""

    name: str
    start: int
    level_bits: int
    memory: bytearray = field(default_factory=lambda: bytearray(4 * MIB))
    used: int = 0

    def new(self) -> int:
        """The physical address of an empty table."""
        self.used += 8 << self.level_bits
        return self.start + self.used

    def put(self, table: int, index: int, entry: int) -> None:
        struct.pack_into("<Q", self.memory, table - self.start + 8 * index, entry)

    def get(self, table: int, index: int) -> int:
        found: int
        (found,) = struct.unpack_from("<Q", self.memory, table - self.start + 8 * index)
        return found

    def sizes(
        self, model: ctypes.CDLL, root: int, control: int, *addresses: int, missing: int = 0
    ) -> list[int]:
        """Base-2 logarithms of the pages' sizes, with the last bytes of the memory missing."""
        bits = (c_uint32 * len(addresses))(*(99 for _ in addresses))
        memory = (ctypes.c_char * len(self.memory)).from_buffer(self.memory)
        model.run_pages.argtypes = [
            *(c_char_p, ctypes.c_void_p, c_uint64, c_uint64, c_uint64),
            *(POINTER(c_uint64), c_size_t, POINTER(c_uint32)),
        ]
        model.run_pages(
            *(self.name.encode(), ctypes.addressof(memory), len(self.memory) - missing),
            *(root, control, (c_uint64 * len(addresses))(*addresses), len(addresses), bits),
        )
        return list(bits)


# x86-64: bits of entries and of CR4.
PRESENT, LARGE, NO_EXECUTE, LA57 = 1 << 0, 1 << 7, 1 << 63, 1 << 12
X86_FLAGS = PRESENT | 0x66 | NO_EXECUTE  # writable, of user mode, accessed, dirty


def map_x86(tables: Tables, root: int, address: int, level: int, levels: int = 4) -> None:
    """Map the page of an address by an entry of that level: 0 for 4 KiB, 1 for 2 MiB."""
    table = root
    for at in range(levels - 1, level, -1):
        index = address >> (12 + 9 * at) & 511
        if not tables.get(table, index) & PRESENT:
            tables.put(table, index, tables.new() | X86_FLAGS)
        table = tables.get(table, index) & 0x000FFFFFFFFFF000
    size = LARGE if level else 0
    tables.put(table, address >> (12 + 9 * level) & 511, 0x40000000 | X86_FLAGS | size)


@pytest.mark.parametrize("levels", [4, 5])
def test_page_tables_of_x86_64(model: ctypes.CDLL, levels: int) -> None:
    tables = Tables("x86_64", 0, 9)
    root, control = tables.new(), LA57 if levels == 5 else 0x20
    high = 1 << 52 if levels == 5 else 1 << 45
    places = {high: 0, 7 * GIB + 6 * MIB: 1, 9 * GIB: 2}
    for address, level in places.items():
        map_x86(tables, root, address, level, levels)
    # Flags in the low bits of CR3, and the bit that keeps entries of its PCID.
    cr3 = root | 0x803
    inside = [address + (1 << 12 + 9 * level) - 1 for address, level in places.items()]
    assert tables.sizes(model, cr3, control, *places) == [12, 21, 30]
    assert tables.sizes(model, cr3, control, *inside) == [12, 21, 30]
    beside = [high + 4096, 7 * GIB + 8 * MIB, 10 * GIB, 1 << 40]
    assert tables.sizes(model, cr3, control, *beside) == [UNKNOWN] * 4
    # The same tables, read with the other number of levels.
    assert 30 not in tables.sizes(model, cr3, control ^ LA57, *places)


def test_the_large_bit_of_upper_levels_is_not_a_size(model: ctypes.CDLL) -> None:
    tables = Tables("x86_64", 0, 9)
    root = tables.new()
    map_x86(tables, root, GIB, 0)
    tables.put(root, 0, tables.get(root, 0) | LARGE)
    assert tables.sizes(model, root, 0, GIB) == [12]
    # In the last level that bit is the page's attribute.
    map_x86(tables, root, GIB, 0)
    assert tables.sizes(model, root, 0, GIB) == [12]


# arm64: bits of entries.
VALID, PAGE, CONTIGUOUS = 1 << 0, 1 << 1, 1 << 52
ARM_FLAGS = VALID | 0xF40 | 1 << 54  # accessed, shared, not global, never executed


@dataclass(frozen=True)
class Granule:
    """What TCR_EL1 says of user addresses: bits of the smallest page, and of addresses."""

    page: int
    tg0: int
    address_bits: int

    def __str__(self) -> str:
        return f"{1 << self.page >> 10}K-{self.address_bits}"

    @property
    def control(self) -> int:
        """TCR_EL1, with what it says of kernel addresses set too."""
        return 0x7 << 32 | 0x2 << 30 | 25 << 16 | self.tg0 << 14 | 64 - self.address_bits

    def shift(self, level: int) -> int:
        return self.page + (3 - level) * (self.page - 3)

    @property
    def first_level(self) -> int:
        return next(n for n in range(-1, 4) if self.shift(n) < self.address_bits)


def map_arm(
    tables: Tables, root: int, granule: Granule, address: int, level: int, flags: int = 0
) -> None:
    """Map the page or block of an address by an entry of that level."""
    table = root
    for at in range(granule.first_level, level):
        index = address >> granule.shift(at) & ((1 << granule.page - 3) - 1)
        if not tables.get(table, index) & VALID:
            tables.put(table, index, tables.new() | VALID | PAGE | 1 << 59)
        table = tables.get(table, index) & (1 << 48) - (1 << granule.page)
    index = address >> granule.shift(level) & ((1 << granule.page - 3) - 1)
    ends = PAGE if level == 3 else 0
    tables.put(table, index, 0x40000000 | ARM_FLAGS | ends | flags)


K4, K16, K64 = Granule(12, 0, 39), Granule(14, 2, 47), Granule(16, 1, 42)


@pytest.mark.parametrize(
    ("granule", "entries"),
    [
        # Each entry's level, whether it is contiguous, and the size of its page.
        (K4, [(3, 0, 4 * KIB), (3, 1, 64 * KIB), (2, 0, 2 * MIB), (2, 1, 32 * MIB), (1, 0, GIB)]),
        (Granule(12, 0, 48), [(3, 0, 4 * KIB), (2, 0, 2 * MIB), (1, 0, GIB)]),
        (Granule(12, 0, 52), [(3, 1, 64 * KIB), (2, 0, 2 * MIB), (1, 0, GIB)]),
        (Granule(12, 0, 36), [(3, 0, 4 * KIB), (2, 0, 2 * MIB), (1, 0, GIB)]),
        (K16, [(3, 0, 16 * KIB), (3, 1, 2 * MIB), (2, 0, 32 * MIB), (2, 1, GIB)]),
        (Granule(14, 2, 36), [(3, 0, 16 * KIB), (2, 0, 32 * MIB)]),
        (Granule(14, 2, 52), [(3, 0, 16 * KIB), (2, 0, 32 * MIB)]),
        (K64, [(3, 0, 64 * KIB), (3, 1, 2 * MIB), (2, 0, 512 * MIB), (2, 1, 16 * GIB)]),
        (Granule(16, 1, 48), [(3, 0, 64 * KIB), (2, 0, 512 * MIB)]),
        (Granule(16, 1, 52), [(3, 0, 64 * KIB), (2, 0, 512 * MIB)]),
    ],
    ids=str,
)
def test_page_tables_of_arm64(
    model: ctypes.CDLL, granule: Granule, entries: list[tuple[int, int, int]]
) -> None:
    tables = Tables("aarch64", GIB, granule.page - 3)
    root = tables.new()
    addresses = [(number + 1) * (1 << granule.address_bits - 3) for number in range(len(entries))]
    for address, (level, contiguous, _) in zip(addresses, entries, strict=True):
        map_arm(tables, root, granule, address, level, contiguous * CONTIGUOUS)
    sizes = [size.bit_length() - 1 for _, _, size in entries]
    # The address space's number, and the bit that shares translations between processors.
    ttbr0 = 42 << 48 | root | 1
    assert tables.sizes(model, ttbr0, granule.control, *addresses) == sizes
    largest = 1 << granule.shift(1 if granule.page == 12 else 2)
    beside = [address + largest for address in addresses]
    assert tables.sizes(model, ttbr0, granule.control, *beside) == [UNKNOWN] * len(beside)
    # A pointer's tag is not part of its address.
    tagged = [0xA5 << 56 | address for address in addresses]
    assert tables.sizes(model, ttbr0, granule.control, *tagged) == sizes


@pytest.mark.parametrize(
    ("granule", "level"),
    [
        pytest.param(Granule(12, 0, 48), 0, id="a block of 512 GiB"),
        pytest.param(Granule(14, 2, 47), 1, id="a block of 64 GiB"),
        pytest.param(Granule(16, 1, 48), 1, id="a block of 4 TiB"),
    ],
)
def test_blocks_of_reserved_levels_are_unknown(
    model: ctypes.CDLL, granule: Granule, level: int
) -> None:
    tables = Tables("aarch64", GIB, granule.page - 3)
    root = tables.new()
    map_arm(tables, root, granule, TIB, level)
    assert tables.sizes(model, root, granule.control, TIB) == [UNKNOWN]


def test_an_entry_of_the_last_level_that_is_not_a_page_is_unknown(model: ctypes.CDLL) -> None:
    tables = Tables("aarch64", GIB, 9)
    root = tables.new()
    map_arm(tables, root, K4, GIB, 3)
    last = tables.start + tables.used
    tables.put(last, 0, tables.get(last, 0) & ~PAGE)
    assert tables.sizes(model, root, K4.control, GIB) == [UNKNOWN]


@pytest.mark.parametrize(
    ("root", "control"),
    [
        pytest.param(0, K4.control, id="no root"),
        pytest.param(None, 0, id="no format"),
        pytest.param(None, K4.control | 3 << 14, id="a granule that does not exist"),
        pytest.param(None, Granule(12, 0, 53).control, id="too many bits"),
        pytest.param(None, Granule(12, 0, 12).control, id="fewer bits than a page"),
        pytest.param(None, Granule(16, 1, 1).control, id="one bit"),
    ],
)
def test_registers_without_a_meaning_are_unknown(
    model: ctypes.CDLL, root: int | None, control: int
) -> None:
    tables = Tables("aarch64", GIB, 9)
    table = tables.new()
    map_arm(tables, table, K4, GIB, 3)
    assert tables.sizes(model, table, K4.control, GIB) == [12]
    given = table if root is None else root
    assert tables.sizes(model, given, control, GIB) == [UNKNOWN]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(0, id="empty"),
        pytest.param(0xFFFFFFFFF003, id="outside of the memory"),
        pytest.param(0x0000_0000_1003, id="below the memory of arm64"),
    ],
)
def test_tables_that_lead_nowhere_are_unknown(model: ctypes.CDLL, entry: int) -> None:
    tables = Tables("aarch64", GIB, 9)
    root = tables.new()
    map_arm(tables, root, K4, GIB, 3)
    tables.put(root, 1, entry)
    assert tables.sizes(model, root, K4.control, GIB) == [UNKNOWN]
    tables = Tables("x86_64", 0, 9)
    root = tables.new()
    map_x86(tables, root, GIB, 0)
    tables.put(root, 0, entry)
    assert tables.sizes(model, root, 0, GIB) == [UNKNOWN]


def test_a_memory_that_ends_within_an_entry_is_not_read(model: ctypes.CDLL) -> None:
    tables = Tables("x86_64", 0, 9)
    root = len(tables.memory) - 4096
    tables.put(root, 511, tables.new() | X86_FLAGS)
    tables.put(tables.used, 0, 0x40000000 | X86_FLAGS | LARGE)  # 1 GiB
    last = 511 << 39
    assert tables.sizes(model, root, 0, last) == [30]
    assert tables.sizes(model, root, 0, last, missing=1) == [UNKNOWN]
    assert tables.sizes(model, root, 0, last, missing=4096) == [UNKNOWN]


@pytest.fixture
def guest_memory() -> Iterator[Callable[[str, int], mmap.mmap]]:
    """Maps memory as QEMU's backend of that name does."""
    mapped = []

    def make(name: str, size: int) -> mmap.mmap:
        descriptor = os.memfd_create(name)
        os.ftruncate(descriptor, size)
        mapped.append(mmap.mmap(descriptor, size))
        os.close(descriptor)
        return mapped[-1]

    yield make
    for each in mapped:
        each.close()


def found_memory(model: ctypes.CDLL, name: str) -> tuple[int, int, int] | None:
    first, size = c_uint64(), c_uint64()
    model.run_guest_memory.restype = c_uint64
    address = model.run_guest_memory(name.encode(), ctypes.byref(first), ctypes.byref(size))
    return (address, first.value, size.value) if address else None


def test_the_memory_of_the_guest_is_found_by_its_backend(
    model: ctypes.CDLL, guest_memory: Callable[[str, int], mmap.mmap]
) -> None:
    guest_memory("another", MIB)
    assert found_memory(model, "x86_64") is None
    memory = guest_memory("memory-backend-memfd", 2 * MIB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert found_memory(model, "x86_64") == (address, 0, 2 * MIB)
    assert found_memory(model, "aarch64") == (address, GIB, 2 * MIB)
