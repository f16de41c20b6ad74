"""The text of a program and positions in it."""

from __future__ import annotations

import codecs
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mepof.errors import InputError

# Programs are written by hand. The limit stops mepof from reading all of a kernel image or
# /dev/zero that is given by mistake.
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Span:
    """Part of a source: offsets in characters, ``end`` exclusive."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True)
class Source:
    """Program text.

    Args:
        name: its name in diagnostics: the path as the user gave it.
        text: the program.
        undecodable: the span of the first byte that is not UTF-8, if any; ``text`` has U+FFFD
            there.
    """

    name: str
    text: str
    undecodable: Span | None = None

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Source:
        """Decode UTF-8 with or without a byte order mark; never fails."""
        data = data.removeprefix(codecs.BOM_UTF8)
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return cls(name, data.decode("utf-16", errors="replace"), Span(0, 1))
        try:
            return cls(name, data.decode())
        except UnicodeDecodeError as error:
            at = len(data[: error.start].decode())
            return cls(name, data.decode(errors="replace"), Span(at, at + 1))

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a program from a file.

        Raises:
            InputError: it cannot be read or is larger than ``MAX_BYTES``.
        """
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError as error:
            raise InputError(f"the program {path} does not exist") from error
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"cannot read the program {path}: {reason}") from error
        if len(data) > MAX_BYTES:
            raise InputError(f"{path} is not a G4 program: it is larger than 1 MiB")
        return cls.from_bytes(str(path), data)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line end."""
        starts = [*self._line_starts[number - 1 : number + 1], len(self.text) + 1]
        return self.text[starts[0] : starts[1] - 1].rstrip("\r")
