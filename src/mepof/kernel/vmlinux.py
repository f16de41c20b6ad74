"""A linked kernel or module for 64 bits as bytes: its sections, its symbols, and what is at an
address."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mepof.errors import WorkError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_WORD = struct.Struct("<I")

_PT_LOAD = 1
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_STRTAB, _SHT_NOBITS = 1, 2, 3, 8
_SHF_ALLOC, _SHF_EXECINSTR = 0x2, 0x4
_STT_FUNC, _STT_SECTION, _STT_FILE = 2, 3, 4
_SHN_ABS = 0xFFF1
_STB_WEAK = 2
_PAGE = 0x1000


@dataclass(frozen=True)
class Section:
    """A section; ``position`` is where it begins in the file."""

    name: str
    address: int
    position: int
    size: int
    allocated: bool
    code: bool

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True)
class Segment:
    """What is loaded: so many bytes at a position of the file to an address."""

    address: int
    position: int
    size: int


@dataclass(frozen=True)
class Function:
    """A function, by all its names.

    Attributes:
        bolt_name: its name in BOLT's lists. Names that are local to a file have a number behind
            them there.
    """

    names: tuple[str, ...]
    bolt_name: str
    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True)
class Symbol:
    """A symbol with a name.

    Attributes:
        section: the index of its section; 0 if it is not defined.
        value: its address; in a module, its place in the section.
    """

    name: str
    section: int
    value: int
    size: int
    kind: int
    binding: int

    @property
    def must_be_found(self) -> bool:
        """Whether something else has to define it."""
        return self.section == 0 and self.binding not in (0, _STB_WEAK)


class Vmlinux:
    """A linked kernel, or a module.

    Raises:
        WorkError: ``data`` is not an ELF file for 64 bits, little endian, with symbols.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        try:
            header = _HEADER.unpack_from(data)
            if header[0][:6] != b"\x7fELF\x02\x01":
                raise WorkError("vmlinux is not an ELF file for 64 bits, little endian")
            self._segments_at, sections_at = header[5], header[6]
            self._segment_count, count, names_index = header[10], header[12], header[13]
            raw = [_SECTION.unpack_from(data, sections_at + 64 * i) for i in range(count)]
            names = raw[names_index]
            self._raw, self._names_index = raw, names_index
            strings = data[names[4] : names[4] + names[5]]
            self._section_names = [_string(strings, each[0]) for each in raw]
        except (struct.error, IndexError) as error:
            raise WorkError(f"vmlinux cannot be read as a kernel: {error}") from error

    @staticmethod
    def read(path: Path) -> Vmlinux:
        return Vmlinux(path.read_bytes())

    @cached_property
    def sections(self) -> Mapping[str, Section]:
        """The sections with content, by name."""
        return {
            name: Section(
                name,
                address=each[3],
                position=each[4],
                size=each[5],
                allocated=bool(each[2] & _SHF_ALLOC),
                code=bool(each[2] & _SHF_EXECINSTR),
            )
            for name, each in zip(self._section_names, self._raw, strict=True)
            if name and each[1] != _SHT_NOBITS
        }

    @cached_property
    def segments(self) -> Sequence[Segment]:
        found = (
            _SEGMENT.unpack_from(self.data, self._segments_at + _SEGMENT.size * i)
            for i in range(self._segment_count)
        )
        return [Segment(each[3], each[2], each[5]) for each in found if each[0] == _PT_LOAD]

    def content(self, section: Section) -> bytes:
        return self.data[section.position : section.position + section.size]

    def content_of(self, name: str) -> bytes:
        """The content of the section of a name; nothing if there is none."""
        found = self.sections.get(name)
        return self.content(found) if found is not None else b""

    def position(self, address: int) -> int:
        """The position in the file of what is loaded to an address.

        Raises:
            WorkError: nothing is.
        """
        for each in self.segments:
            if each.address <= address < each.address + each.size:
                return each.position + address - each.address
        raise WorkError(f"nothing of vmlinux is loaded at {address:#x}")

    def at(self, address: int, size: int) -> bytes:
        start = self.position(address)
        return self.data[start : start + size]

    @cached_property
    def functions(self) -> Sequence[Function]:
        """The functions with a size, by address."""
        found: dict[int, list[tuple[str, str, int]]] = {}
        numbers: Counter[str] = Counter()
        for name, address, size, is_function, is_local in self._memory_symbols():
            if is_local:
                numbers[name] += 1
            if is_function and size:
                bolt_name = f"{name}/{numbers[name]}" if is_local else name
                found.setdefault(address, []).append((name, bolt_name, size))
        return [
            Function(tuple(n for n, _, _ in each), each[0][1], at, max(s for _, _, s in each))
            for at, each in sorted(found.items())
        ]

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [each.address for each in self.functions]

    def function_at(self, address: int) -> Function | None:
        """The function that an address is in."""
        index = bisect_right(self._starts, address) - 1
        found = self.functions[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def symbol(self, name: str) -> int | None:
        """The address of a symbol."""
        return self._addresses.get(name)

    @cached_property
    def _addresses(self) -> Mapping[str, int]:
        return {name: address for name, address, *_ in self._memory_symbols()}

    @property
    def _symbol_table(self) -> tuple[int, ...]:
        table = next((each for each in self._raw if each[1] == _SHT_SYMTAB), None)
        if table is None:
            raise WorkError("vmlinux has no symbols")
        return table

    def _memory_symbols(self) -> Iterator[tuple[str, int, int, bool, bool]]:
        """Name, address, size, whether a function, and whether local, in the order in which BOLT
        numbers local ones (LLVM 22, ``RewriteInstance::discoverFileObjects``)."""
        found = []
        for each in self.symbols():
            if each.kind in (_STT_FILE, _STT_SECTION) or not 0 < each.section < len(self._raw):
                continue
            if self._raw[each.section][2] & _SHF_ALLOC:
                is_function, is_local = each.kind == _STT_FUNC, each.binding == 0
                found.append((each.name, each.value, each.size, is_function, is_local))
        found.sort(key=lambda each: (each[1], not each[3]))
        yield from found

    def symbols(self) -> Iterator[Symbol]:
        """The symbols that have a name, in the order of the table."""
        table = self._symbol_table
        strings = self._raw[table[6]]
        texts = self.data[strings[4] : strings[4] + strings[5]]
        entries = self.data[table[4] : table[4] + table[5]]
        for at, info, _, section, value, size in _SYMBOL.iter_unpack(entries):
            if at:
                yield Symbol(_string(texts, at), section, value, size, info & 0xF, info >> 4)

    def word(self, symbol: Symbol) -> int:
        """The 32 bits that a symbol stands before; those of its value if it is absolute.

        Raises:
            WorkError: it stands before nothing in the file.
        """
        if symbol.section == _SHN_ABS:
            return symbol.value & 0xFFFFFFFF
        try:
            section = self._raw[symbol.section]
            found = _WORD.unpack_from(self.data, section[4] + symbol.value - section[3])
        except (struct.error, IndexError) as error:
            raise WorkError(f"the symbol {symbol.name} is outside of its section") from error
        return int(found[0])

    def targets(self, section: str) -> Iterator[tuple[str, int]]:
        """Where the words of a module's section point to, in their order: the name of a section,
        which is empty outside of the module, and the place in it."""
        symbols = self._symbol_table[4]
        entries = self.content_of(f".rela{section}")
        for _, info, addend in sorted(_RELOCATION.iter_unpack(entries)):
            at = symbols + _SYMBOL.size * (info >> 32)
            _, _, _, index, value, _ = _SYMBOL.unpack_from(self.data, at)
            known = 0 < index < len(self._section_names)
            yield self._section_names[index] if known else "", value + addend

    def with_sections(
        self,
        contents: Mapping[str, Callable[[int], bytes]],
        hidden: Collection[str],
        symbols: Mapping[str, str],
    ) -> tuple[bytes, Mapping[str, Section]]:
        """This kernel with more sections.

        Args:
            contents: of each new section, by its address.
            hidden: sections that get another name.
            symbols: of each of these symbols, the new section that it begins, or ends if its name
                begins with ``__stop``.

        Returns:
            The file, and the new sections.
        """
        data, added = bytearray(self.data), {}
        segments = [
            _SEGMENT.unpack_from(self.data, self._segments_at + _SEGMENT.size * i)
            for i in range(self._segment_count)
        ]
        start, first = _pad(data, _PAGE), max(each[3] + each[6] for each in segments)
        base = -(-first // _PAGE) * _PAGE + _PAGE
        for name, content in contents.items():
            position = _pad(data, 8)
            address = base + position - start
            data += content(address)
            size = len(data) - position
            added[name] = Section(name, address, position, size, allocated=True, code=False)
        size = len(data) - start
        segments.append((_PT_LOAD, 4, start, base, base, size, size, _PAGE))
        segments_at = _pad(data, 8)
        data += b"".join(_SEGMENT.pack(*each) for each in segments)

        listed = [
            (f"hidden{each}" if each in hidden else each, fields)
            for each, fields in zip(self._section_names, self._raw, strict=True)
        ]
        for each in added.values():
            place = (each.address, each.position, each.size)
            listed.append((each.name, (0, _SHT_PROGBITS, _SHF_ALLOC, *place, 0, 0, 8, 0)))
        strings, raw = bytearray(b"\0"), []
        for name, fields in listed:
            raw.append((len(strings), *fields[1:]))
            strings += name.encode() + b"\0"
        strings_at = _pad(data, 8)
        data += strings
        names = raw[self._names_index]
        raw[self._names_index] = (*names[:4], strings_at, len(strings), *names[6:])
        sections_at = _pad(data, 8)
        data += b"".join(_SECTION.pack(*each) for each in raw)
        for name, section in symbols.items():
            found, index = added[section], len(self._raw) + list(added).index(section)
            value = found.end if name.startswith("__stop") else found.address
            self._move_symbol(data, name, index, value)

        header = list(_HEADER.unpack_from(data))
        header[5], header[6], header[10], header[12] = (
            segments_at,
            sections_at,
            len(segments),
            len(raw),
        )
        _HEADER.pack_into(data, 0, *header)
        return bytes(data), added

    def _move_symbol(self, data: bytearray, name: str, section: int, value: int) -> None:
        table = self._symbol_table
        strings = self._raw[table[6]]
        for at in range(table[4], table[4] + table[5], _SYMBOL.size):
            fields = _SYMBOL.unpack_from(data, at)
            start = strings[4] + fields[0]
            if data[start : start + len(name) + 1] == name.encode() + b"\0":
                _SYMBOL.pack_into(data, at, *fields[:3], section, value, fields[5])


def _pad(data: bytearray, alignment: int) -> int:
    """Fill up to an alignment; returns the size then."""
    data += bytes(-len(data) % alignment)
    return len(data)


def _string(strings: bytes, at: int) -> str:
    return strings[at : strings.index(b"\0", at)].decode("utf-8", "replace")
