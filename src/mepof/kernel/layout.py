"""The section layout of a linked kernel, and whether it can run.

A text section that the linker script does not name becomes an orphan: the linker puts it
where it likes, which may be among the init text that is freed after boot. Such a kernel
boots and then dies silently. Profiles make such sections (``.text.hot.``,
``.text.split.``, ``.text.unlikely.``), so every link is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mepof.errors import WorkError

_SHF_ALLOC = 0x2
_SHF_EXECINSTR = 0x4
_BOUNDS = ("_stext", "_etext", "__init_begin", "__init_end")
# Sections that may lie in the memory that is freed after boot: they are used during boot only, or
# are templates that are copied.
_FREED = (
    *(".init", ".exit", ".alt", ".smp_locks", ".parainstructions", ".head", ".rodata.text"),
    # 32-bit Arm's, whose addresses are those that they are copied to.
    *(".vectors", ".stubs"),
)


@dataclass(frozen=True)
class Section:
    """An allocated section: its name, first address, size in bytes, and whether it is code."""

    name: str
    address: int
    size: int
    executable: bool

    @property
    def end(self) -> int:
        """The address after its last byte."""
        return self.address + self.size


@dataclass(frozen=True)
class Layout:
    """The allocated sections of a kernel and the bounds that its linker script sets.

    Attributes:
        functions: size in bytes of every function by its address; aliases count once.
    """

    sections: tuple[Section, ...]
    bounds: Mapping[str, int]
    functions: Mapping[int, int]

    def text_bytes(self) -> int:
        """Bytes of the functions between ``_stext`` and ``_etext``.

        The distance of the two would hide every change: linker scripts round it up, by up
        to 2 MiB on x86-64.
        """
        start, end = self.bounds["_stext"], self.bounds["_etext"]
        return sum(size for at, size in self.functions.items() if start <= at < end)


def read(vmlinux: Path) -> Layout:
    """The layout of a linked kernel.

    Raises:
        WorkError: it is not an ELF file, or does not have the bounds of its text.
    """
    try:
        with vmlinux.open("rb") as file:
            elf = ELFFile(file)
            sections = tuple(
                Section(s.name, s["sh_addr"], s["sh_size"], bool(s["sh_flags"] & _SHF_EXECINSTR))
                for s in elf.iter_sections()
                if s["sh_flags"] & _SHF_ALLOC and s["sh_size"]
            )
            table = elf.get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection):
                raise WorkError(f"{vmlinux} has no symbol table")
            functions: dict[int, int] = {}
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] == "STT_FUNC":
                    at, size = symbol["st_value"], symbol["st_size"]
                    functions[at] = max(size, functions.get(at, 0))
            bounds = {
                name: symbols[0]["st_value"]
                for name in _BOUNDS
                if (symbols := table.get_symbol_by_name(name))
            }
    except (ELFError, OSError, ValueError) as error:  # offsets beyond any file
        raise WorkError(f"{vmlinux} cannot be read as a kernel: {error}") from error
    absent = [name for name in _BOUNDS if name not in bounds]
    if absent:
        raise WorkError(f"{vmlinux} has no symbol {', '.join(absent)}")
    return Layout(sections, bounds, functions)


def faults(layout: Layout) -> Sequence[str]:
    """What is wrong with the addresses of the executable sections; empty if nothing is.

    Code must lie wholly between ``_stext`` and ``_etext``, or be init code between
    ``__init_begin`` and ``__init_end``. The per-cpu area, whose addresses start at zero
    on some architectures, holds no code.
    """
    stext, etext, init, init_end = (layout.bounds[name] for name in _BOUNDS)
    found = []
    for section in layout.sections:
        if not section.executable:
            continue
        where = f"{section.name} at {section.address:#x}..{section.end:#x}"
        freed_name = section.name.startswith(_FREED)
        if init < section.end and section.address < init_end:
            if not freed_name:
                found.append(f"{where} lies in the memory that is freed after boot")
        elif not (stext <= section.address and section.end <= etext) and not freed_name:
            found.append(f"{where} lies outside the kernel's text {stext:#x}..{etext:#x}")
    return found
