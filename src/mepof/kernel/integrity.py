"""Whether the tables of a linked kernel, or of a module, still fit its text.

Profiles move code: functions are split, blocks go to sections of their own. What the kernel looks
up by address at run time must have moved with it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from mepof.errors import WorkError

_SHF_EXECINSTR = 0x4
# struct exception_table_entry: two distances from the field itself, and 4 bytes of data that arm64
# has since 5.17. Linux 5.10 and 6.12, arch/{x86,arm64}/include/asm/extable.h. A table of many
# entries of one size is none of the other.
_EXCEPTION = struct.Struct("<ii")
_ENTRY_BYTES = (12, 8)
# That of 32-bit Arm has two addresses: Linux 6.12, include/asm-generic/extable.h.
_ADDRESSES = struct.Struct("<II")


def faults(vmlinux: Path, *, sorts_at_boot: bool = False) -> Sequence[str]:
    """What is wrong with the exception table and the unwinder's; empty if nothing is.

    Args:
        sorts_at_boot: the kernel sorts its exception table itself.

    Raises:
        WorkError: the file cannot be read.
    """
    try:
        with vmlinux.open("rb") as file:
            elf = ELFFile(file)
            sections = {section.name: section for section in elf.iter_sections()}
            code = [
                (section["sh_addr"], section["sh_addr"] + section["sh_size"])
                for section in sections.values()
                if section["sh_flags"] & _SHF_EXECINSTR
            ]
            found: list[str] = []
            if "__ex_table" in sections:
                table = sections["__ex_table"]
                data, at = _data(file, table), table["sh_addr"]
                if elf["e_machine"] == "EM_ARM":
                    tables = [_addresses(data)]
                else:
                    tables = [_distances(data, at, size) for size in _ENTRY_BYTES]
                found += _of_one_size(
                    _exceptions(entries, code, in_order=not sorts_at_boot) for entries in tables
                )
            if ".orc_unwind_ip" in sections:
                table = sections[".orc_unwind_ip"]
                entries_bytes = sections[".orc_unwind"]["sh_size"]
                found += _unwinder(_data(file, table), table["sh_addr"], entries_bytes)
            return found
    except (ELFError, OSError, KeyError, ValueError) as error:  # offsets beyond any file
        raise WorkError(f"{vmlinux} cannot be read as a kernel: {error}") from error


def module_faults(module: Path) -> Sequence[str]:
    """What is wrong with a module's exception table and that of its unwinder.

    A module is relocatable: its tables have no addresses yet, but relocations to sections. The
    kernel sorts them when it loads the module.

    Raises:
        WorkError: the file cannot be read.
    """
    try:
        with module.open("rb") as file:
            elf = ELFFile(file)
            sections = {section.name: section for section in elf.iter_sections()}
            found: list[str] = []
            if "__ex_table" in sections:
                found += _of_one_size(
                    _module_exceptions(elf, sections["__ex_table"], size) for size in _ENTRY_BYTES
                )
            if ".orc_unwind_ip" in sections:
                table, entries = sections[".orc_unwind_ip"], sections[".orc_unwind"]
                found += _counts(table["sh_size"], entries["sh_size"])
            return found
    except (ELFError, OSError, KeyError, IndexError, ValueError) as error:
        raise WorkError(f"{module} cannot be read as a module: {error}") from error


def _of_one_size(found: Iterable[Sequence[str]]) -> Sequence[str]:
    """The faults of a table, by those that it has with each size of entries."""
    faults = list(found)
    return faults[0] if all(faults) else []


def _module_exceptions(elf: ELFFile, table: Section, size: int) -> Sequence[str]:
    """Each entry has a relocation for the instruction and one for the fixup, both to code."""
    if table["sh_size"] % size:
        return ["the exception table ends within an entry"]
    wanted = {at + field for at in range(0, table["sh_size"], size) for field in (0, 4)}
    number = elf.get_section_index(table.name)
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or section["sh_info"] != number:
            continue
        symbols = elf.get_section(section["sh_link"])
        assert isinstance(symbols, SymbolTableSection)
        for relocation in section.iter_relocations():
            at = relocation["r_offset"]
            target = symbols.get_symbol(relocation["r_info_sym"])["st_shndx"]
            code = isinstance(target, int) and (
                elf.get_section(target)["sh_flags"] & _SHF_EXECINSTR
            )
            if at in wanted and not code:
                return [f"the exception table leads to {target} at {at:#x}, which is not code"]
            wanted.discard(at)
    return [f"the exception table has no address at {min(wanted):#x}"] if wanted else []


def _data(file: IO[bytes], section: Section) -> bytes:
    """The contents of a section. Its size is not trusted."""
    start, size = section["sh_offset"], section["sh_size"]
    if start + size > file.seek(0, os.SEEK_END):
        raise ELFError(f"{section.name} ends beyond the file")
    file.seek(start)
    return file.read(size)


def _distances(data: bytes, address: int, size: int) -> Sequence[tuple[int, int]] | None:
    """The instructions and fixups of a table whose entries have distances from themselves; None
    where it ends within an entry."""
    if len(data) % size:
        return None
    fields = [(address + at, *_EXCEPTION.unpack_from(data, at)) for at in range(0, len(data), size)]
    return [(at + raising, at + 4 + leading) for at, raising, leading in fields]


def _addresses(data: bytes) -> Sequence[tuple[int, int]] | None:
    """The same of a table whose entries have addresses."""
    if len(data) % _ADDRESSES.size:
        return None
    return [(raising, leading) for raising, leading in _ADDRESSES.iter_unpack(data)]


def _exceptions(
    entries: Sequence[tuple[int, int]] | None, code: Sequence[tuple[int, int]], *, in_order: bool
) -> Sequence[str]:
    if entries is None:
        return ["the exception table ends within an entry"]
    before = 0
    for raising, leading in entries:
        for what, where in (("an instruction", raising), ("a fixup", leading)):
            if not any(start <= where < end for start, end in code):
                return [f"the exception table has {what} at {where:#x}, where there is no code"]
        if in_order and raising < before:
            return [f"the exception table is not sorted at {raising:#x}"]
        before = raising
    return []


def _unwinder(data: bytes, address: int, entries_bytes: int) -> Sequence[str]:
    """ORC: distances of 4 bytes, sorted, and as many entries of 6 bytes (Linux 6.12)."""
    if wrong := _counts(len(data), entries_bytes):
        return wrong
    before = 0
    for at, (distance,) in zip(range(0, len(data), 4), struct.iter_unpack("<i", data), strict=True):
        where = address + at + distance
        if where < before:
            return [f"the unwinder's table is not sorted at {where:#x}"]
        before = where
    return []


def _counts(addresses_bytes: int, entries_bytes: int) -> Sequence[str]:
    if addresses_bytes % 4:
        return ["the unwinder's table ends within an address"]
    count = addresses_bytes // 4
    if entries_bytes != 6 * count:
        return [f"the unwinder has {count} addresses and {entries_bytes} bytes of entries"]
    return []
