"""Parses tokens into the syntax tree. Skips a wrong statement and parses the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mepof.g4.ast import OPERANDS, STATEMENTS, Operand, Program, Statement, Word, form_of
from mepof.g4.diagnostics import Diagnostic, in_order, quote, suggestion
from mepof.g4.lexer import Token, tokenize
from mepof.g4.source import Source, Span


@dataclass(frozen=True)
class ParseResult:
    """The program, as far as it could be parsed, and what was wrong with it."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]


def parse(source: Source) -> ParseResult:
    """Parse a program. Any text gives a result; it is valid if there are no diagnostics."""
    tokens, diagnostics = tokenize(source)
    parser = _Parser(source, diagnostics)
    raws, closing = parser.split(tokens)
    statements = [parser.statement(raw) for raw in raws]
    program = Program(
        tuple(s for s in statements if s is not None), closing, complete=None not in statements
    )
    return ParseResult(program, in_order(diagnostics))


@dataclass
class _Raw:
    """The tokens of one statement, without its dot, and the comments attached to it."""

    tokens: list[Token]
    span: Span
    leading: list[str]
    trailing: str = field(default="")


class _Wrong(Exception):
    """A statement that cannot be parsed."""

    def __init__(self, span: Span, message: str, help: str | None = None) -> None:
        self.diagnostic = Diagnostic(span, message, help)


class _Parser:
    def __init__(self, source: Source, diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = diagnostics

    def split(self, tokens: list[Token]) -> tuple[list[_Raw], tuple[str, ...]]:
        """Cut the tokens into statements, and the comments after the last one."""
        raws: list[_Raw] = []
        words: list[Token] = []
        leading: list[str] = []

        def close(end: Span) -> None:
            nonlocal words, leading
            raws.append(_Raw(words, words[0].span.to(end), leading))
            words, leading = [], []

        def close_without_dot() -> None:
            end = words[-1].span
            self.diagnostics.append(
                Diagnostic(
                    Span(end.end, end.end),
                    f"`.` is missing at the end of the {quote(words[0].text)} statement",
                    "a `.` followed by a blank or the end of the file ends a statement",
                )
            )
            close(end)

        for token in tokens:
            if words and self.begins_statement(token, words):
                close_without_dot()
            if token.newlines > 1 and not words and (raws or leading):
                leading.append("")
            if token.kind == "comment":
                if token.newlines == 0 and raws and not words:
                    raws[-1].trailing = token.text
                else:
                    # Those between the operands of a statement move before it.
                    leading.append(token.text)
            elif token.kind != ".":
                words.append(token)
            elif words:
                close(token.span)
            elif token.text:
                self.diagnostics.append(
                    Diagnostic(token.span, "there is no statement before this `.`")
                )
        if words:
            close_without_dot()
        return raws, tuple(leading)

    def begins_statement(self, token: Token, words: list[Token]) -> bool:
        """Whether a token inside a statement is really the verb of the next one, with the dot
        before it forgotten: it begins a line and is not indented deeper."""
        return (
            token.kind == "word"
            and token.text in STATEMENTS
            and token.newlines > 0
            and words[-1].kind != ";"
            and self.column(token) <= self.column(words[0])
        )

    def column(self, token: Token) -> int:
        return self.source.position(token.span.start)[1]

    def statement(self, raw: _Raw) -> Statement | None:
        """The statement, or None after a report."""
        if any(token.kind == "bad" for token in raw.tokens):
            return None  # already reported by the lexer
        try:
            return _build(raw)
        except _Wrong as wrong:
            self.diagnostics.append(wrong.diagnostic)
            return None


def _build(raw: _Raw) -> Statement:
    (verb, *rest), *groups = _groups(raw.tokens)
    if rest or verb.kind != "word":
        raise _Wrong(verb.span, "a statement begins with a verb", _known_verbs())
    cls = STATEMENTS.get(verb.text)
    if cls is None:
        raise _Wrong(
            verb.span, f"unknown verb {quote(verb.text)}", suggestion(verb.text, STATEMENTS)
        )
    operands = OPERANDS[cls.verb]
    missing = [operand.noun for operand in operands[len(groups) :] if not operand.many]
    if missing:
        raise _Wrong(
            raw.span,
            f"`{cls.verb}` is missing its {' and '.join(missing)}",
            f"write `{form_of(cls.verb)}`",
        )
    if len(groups) > len(operands):
        raise _too_many(cls, groups)
    groups += [[]] * (len(operands) - len(groups))  # trailing lists are optional
    values: dict[str, Any] = {
        operand.name: _list(operand, group) if operand.many else _single(operand, group)
        for operand, group in zip(operands, groups, strict=True)
    }
    return cls(
        **values,
        span=raw.span,
        leading=tuple(raw.leading),
        trailing=raw.trailing,
    )


def _groups(tokens: list[Token]) -> list[list[Token]]:
    """The operands: lists of items separated by ``;``."""
    groups: list[list[Token]] = []
    joined = False
    for token in tokens:
        if token.kind == ";":
            if joined or not groups:
                raise _Wrong(token.span, "an item is missing before this `;`")
            joined = True
        elif joined:
            groups[-1].append(token)
            joined = False
        else:
            groups.append([token])
    if joined:
        raise _Wrong(tokens[-1].span, "an item is missing after this `;`")
    return groups


def _too_many(cls: type[Statement], groups: list[list[Token]]) -> _Wrong:
    maximum = len(OPERANDS[cls.verb])
    extra = groups[maximum:]
    verb = next((g[0].text for g in extra if g[0].kind == "word" and g[0].text in STATEMENTS), None)
    remedy = f"write `{form_of(cls.verb)}`; `;` separates the items of a list"
    if verb:
        remedy = f"is a `.` missing before `{verb}`?"
    elif any("/" in token.text for group in groups for token in group):
        remedy += ", and a path with blanks is in double quotes"
    return _Wrong(
        extra[0][0].span.to(extra[-1][-1].span),
        f"`{cls.verb}` takes at most {maximum} operands, found {len(groups)}",
        remedy,
    )


def _is_dash(token: Token) -> bool:
    return token.kind == "word" and token.text == "-"


def _single(operand: Operand, group: list[Token]) -> Word:
    span = group[0].span.to(group[-1].span)
    if len(group) > 1:
        raise _Wrong(span, f"expected one {operand.noun}, not a list")
    if _is_dash(group[0]):
        raise _Wrong(span, f"the {operand.noun} cannot be empty")
    return Word(group[0].text, group[0].span)


def _list(operand: Operand, group: list[Token]) -> tuple[Word, ...]:
    if len(group) == 1 and _is_dash(group[0]):
        return ()
    for token in group:
        if _is_dash(token):
            raise _Wrong(
                token.span,
                "`-` stands for an empty list and cannot be an item",
                f'if that is the name of the {operand.noun}, quote it: `"-"`',
            )
    return tuple(Word(token.text, token.span) for token in group)


def _known_verbs() -> str:
    return "known: " + ", ".join(sorted(STATEMENTS))
