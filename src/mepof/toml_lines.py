"""Lines of the keys of a TOML file, which ``tomllib`` does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

Location = tuple[str | int, ...]
"""Keys and indices from the top of a file to one of its values."""

# Strings before what they may contain; words are bare keys and all other values.
_TOKEN = re.compile(
    r'(?:"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5})'
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|\n|[][{}=,.]|[^][{}=,.#\"'\s]+",
    re.S,
)
_END = ""
_CLOSING = {"[": "]", "{": "}"}


def lines_of(text: str) -> Mapping[Location, int]:
    """The line, from 1, on which each key, table and element of an array begins.

    Args:
        text: of a file that ``tomllib`` accepts.
    """
    scan = _Scan(_tokens(text))
    scan.file()
    return scan.lines


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The tokens except comments, each with the line on which it begins."""
    line, counted = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        if not found[0].startswith("#"):
            yield found[0], line
    yield _END, line


class _Scan:
    def __init__(self, tokens: Iterator[tuple[str, int]]) -> None:
        self.lines: dict[Location, int] = {}
        self._last: dict[Location, int] = {}  # index of each array's last table so far
        self._tokens = tokens
        self._token, self._line = next(tokens)

    def file(self) -> None:
        table: Location = ()
        while self._token != _END:
            if self._token == "\n":
                self._take()
            elif self._token == "[":
                table = self._header()
            else:
                self._entry(table)

    def _take(self) -> str:
        token = self._token
        self._token, self._line = next(self._tokens, (_END, self._line))
        return token

    def _header(self) -> Location:
        line = self._line
        self._take()
        repeated = self._token == "["
        if repeated:
            self._take()
        table: Location = ()
        for key in self._key("]"):
            if table in self._last:
                table = (*table, self._last[table])
            table = (*table, key)
            self.lines.setdefault(table, line)
        if repeated:
            self._take()
            self._last[table] = self._last.get(table, -1) + 1
            table = (*table, self._last[table])
        self.lines[table] = line
        return table

    def _entry(self, table: Location) -> None:
        line = self._line
        for key in self._key("="):
            table = (*table, key)
            self.lines.setdefault(table, line)
        self._value(table)

    def _key(self, end: str) -> list[str]:
        """The parts of a dotted key; the token behind it is taken too."""
        parts: list[str] = []
        while (token := self._take()) not in (end, _END):
            if token[0] in "\"'":
                parts.append(tomllib.loads(f"key = {token}")["key"])
            elif token != ".":
                parts.append(token)
        return parts

    def _value(self, location: Location) -> None:
        if self._token in _CLOSING:
            self._nested(_CLOSING[self._token], location)
        else:
            while self._token not in (",", "]", "}", "\n", _END):
                self._take()

    def _nested(self, end: str, location: Location) -> None:
        """An array or an inline table, whose entries a newline may separate too."""
        self._take()
        index = 0
        while self._token not in (end, _END):
            if self._token in ("\n", ","):
                self._take()
            elif end == "}":
                self._entry(location)
            else:
                self.lines[(*location, index)] = self._line
                self._value((*location, index))
                index += 1
        self._take()
