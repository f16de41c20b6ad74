"""Small ELF64 files from tuples: sections with addresses and flags, and symbols.

Nothing in them runs; they have what a reader of section and symbol tables looks at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

ALLOC, EXECUTABLE = 0x2, 0x4
CODE = ALLOC | EXECUTABLE

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")

# Name, address, size in bytes, flags.
Section = tuple[str, int, int, int]
# Name, address, size in bytes.
Function = tuple[str, int, int]


def elf64(
    sections: Sequence[Section],
    symbols: Mapping[str, int],
    functions: Sequence[Function] = (),
    *,
    symbol_table: bool = True,
    contents: Mapping[str, bytes] | None = None,
) -> bytes:
    """An executable of x86-64 with these sections and symbols.

    Args:
        contents: of sections, by name; the others have a size only.
    """
    names = _Strings()
    labels = _Strings()
    table = _SYMBOL.pack(0, 0, 0, 0, 0, 0) + b"".join(
        [
            *(_symbol(labels.add(name), 0x10, value, 0) for name, value in symbols.items()),
            *(_symbol(labels.add(name), 0x12, value, size) for name, value, size in functions),
        ]
    )
    headers = [_SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    body = b""

    def append(
        name: str,
        kind: int,
        data: bytes,
        link: int = 0,
        entry: int = 0,
        *,
        flags: int = 0,
        address: int = 0,
    ) -> None:
        nonlocal body
        fields = (flags, address, _HEADER.size + len(body), len(data))
        headers.append(_SECTION.pack(names.add(name), kind, *fields, link, 1, 8, entry))
        body += data

    for name, address, size, flags in sections:
        if contents is not None and name in contents:
            append(name, 1, contents[name], flags=flags, address=address)
        else:
            # SHT_NOBITS: sizes without bytes.
            headers.append(_SECTION.pack(names.add(name), 8, flags, address, 0, size, 0, 0, 16, 0))
    if symbol_table:
        append(".symtab", 2, table, link=len(headers) + 1, entry=_SYMBOL.size)
        append(".strtab", 3, labels.data)
    names.add(".shstrtab")
    append(".shstrtab", 3, names.data)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    start = _HEADER.size + len(body)
    header = _HEADER.pack(
        *(ident, 2, 62, 1, 0, 0, start, 0, _HEADER.size, 56, 0),
        *(_SECTION.size, len(headers), len(headers) - 1),
    )
    return header + body + b"".join(headers)


def _symbol(name: int, info: int, value: int, size: int) -> bytes:
    """A symbol with an absolute address."""
    return _SYMBOL.pack(name, info, 0, 0xFFF1, value, size)


class _Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = b"\0"
        self._at: dict[str, int] = {}

    def add(self, text: str) -> int:
        """The offset of a string, which is added if need be."""
        if text not in self._at:
            self._at[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._at[text]
