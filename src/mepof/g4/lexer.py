"""Tokens of G4.

A word ends at the next blank or ``;``, or at a ``.`` before a blank or the end of the file,
which ends the statement; so ``/out/opt.img`` is one word. Any text can be cut into tokens:
what is malformed becomes a ``bad`` token and a diagnostic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.source import Source, Span

Kind = Literal["word", "string", "bad", ";", ".", "comment"]

_WORD = re.compile(r"(?:[^ \t\r\n;.]|\.(?![ \t\r\n]|\Z))+")
# Alternatives in order: a `#` or `"` that begins a token is not a word. The closing quote is
# optional so that the match never fails and never backtracks: lexing stays linear.
_TOKEN = re.compile(
    r"(?P<blank>[ \t\r\n]+)"
    r"|(?P<comment>\#[^\r\n]*)"
    r'|(?P<string>"(?:[^"\\\r\n]|\\[^\r\n]?)*"?)'
    r"|(?P<list>;)"
    r"|(?P<end>\.(?=[ \t\r\n]|\Z))"
    rf"|(?P<word>{_WORD.pattern})"
)
_ESCAPE = re.compile(r"\\(.?)")
# None of these is allowed in a program, not even in a string or a comment. UTF-8 cannot
# contain surrogates, and printing one raises an error.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True)
class Token:
    """A token; ``text`` is without quotes and escapes, ``newlines`` counts the line ends
    between it and the token before."""

    kind: Kind
    text: str
    span: Span
    newlines: int


def is_bare(text: str) -> bool:
    """Whether an operand needs no quotes."""
    return (
        text != "-"
        and not text.startswith("#")
        and '"' not in text
        and text.isprintable()
        and _WORD.fullmatch(text) is not None
    )


def tokenize(source: Source) -> tuple[list[Token], list[Diagnostic]]:
    """Cut a source into tokens, with comments and without blanks."""
    lexer = _Lexer(source)
    for match in _TOKEN.finditer(source.text):
        lexer.take(match)
    return lexer.tokens, lexer.diagnostics


class _Lexer:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens: list[Token] = []
        self.diagnostics = [
            Diagnostic(Span(*m.span()), f"control character U+{ord(m[0][0]):04X}", "remove it")
            for m in _CONTROL.finditer(source.text)
        ]
        if source.undecodable is not None:
            self.diagnostics.append(
                Diagnostic(source.undecodable, "the program is not UTF-8", "save it as UTF-8")
            )
        self.newlines = 0

    def take(self, match: re.Match[str]) -> None:
        raw, span = match[0], Span(*match.span())
        match match.lastgroup:
            case "blank":
                self.newlines = max(raw.count("\n"), raw.count("\r"))
                return
            case "comment":
                self.add("comment", raw.rstrip(), span)
            case "string":
                self.string(raw, span)
            case "list":
                self.add(";", raw, span)
            case "end":
                self.add(".", raw, span)
            case _:
                self.word(raw, span)
        self.newlines = 0

    def add(self, kind: Kind, text: str, span: Span) -> None:
        self.tokens.append(Token(kind, text, span, self.newlines))

    def report(self, span: Span, message: str, help: str) -> None:
        self.diagnostics.append(Diagnostic(span, message, help))

    def report_quoting(self, span: Span, message: str, help: str) -> None:
        # One misplaced quote often breaks the next token too; report it once.
        if not self.tokens or self.tokens[-1].kind != "bad":
            self.report(span, message, help)

    def is_damaged(self, raw: str) -> bool:
        """Whether the text contains something that was reported for the whole source."""
        return bool(_CONTROL.search(raw)) or (
            self.source.undecodable is not None and "\ufffd" in raw
        )

    def string(self, raw: str, span: Span) -> None:
        body = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', raw, re.DOTALL)
        if body is None:
            self.report(span, "unterminated string", 'a string ends with `"` on the same line')
            # It also contains the statement's end.
            self.add("bad", raw, span)
            self.add(".", "", Span(span.end, span.end))
            return
        kind: Kind = "bad" if self.is_damaged(raw) else "string"
        if self.touches_operand(span):
            kind = "bad"
            self.report_quoting(
                span, "missing blank before this string", 'write `"a" "b"` or `"ab"`'
            )
        for escape in _ESCAPE.finditer(raw):
            if escape[1] not in ('"', "\\"):
                kind = "bad"
                at = span.start + escape.start()
                self.report(
                    Span(at, at + 2),
                    f"unknown escape {quote(escape[0])}",
                    r"the escapes are `\"` and `\\`",
                )
        self.add(kind, _ESCAPE.sub(r"\1", body[1]), span)

    def word(self, raw: str, span: Span) -> None:
        invisible = next((c for c in raw if not c.isprintable() and not _CONTROL.match(c)), None)
        kind: Kind = "bad"
        if self.touches_operand(span):
            self.report_quoting(span, "missing blank after the string", 'write `"a" b` or `"ab"`')
        elif invisible is not None:
            at = span.start + raw.index(invisible)
            self.report(
                Span(at, at + 1),
                f"invisible character U+{ord(invisible):04X} in a word",
                "write an ordinary space, or quote the operand",
            )
        elif '"' in raw:
            self.report_quoting(
                span, f'`"` inside the word {quote(raw)}', "put quotes around the whole operand"
            )
        elif not self.is_damaged(raw):
            kind = "word"
        self.add(kind, raw, span)

    def touches_operand(self, span: Span) -> bool:
        last = self.tokens[-1] if self.tokens else None
        return (
            last is not None
            and last.span.end == span.start
            and last.kind in ("word", "string", "bad")
        )
