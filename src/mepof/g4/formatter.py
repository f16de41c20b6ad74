"""Formats programs: one statement per line, no blanks in lists, comments kept."""

from __future__ import annotations

import re

from mepof.g4.ast import OPERANDS, Program, Statement, Word
from mepof.g4.lexer import is_bare


def format_program(program: Program) -> str:
    """The text of a program; parsing it gives an equal program.

    Raises:
        ValueError: the program is incomplete, so statements would be lost.
    """
    if not program.complete:
        raise ValueError("a program with syntax errors cannot be formatted")
    lines: list[str] = []
    for statement in program.statements:
        lines += [*statement.leading, format_statement(statement)]
    lines += program.closing
    return "".join(f"{line}\n" for line in lines)


def format_statement(statement: Statement) -> str:
    """One statement on one line, with its trailing comment."""
    operands = [
        _format_operand(getattr(statement, operand.name)) for operand in OPERANDS[statement.verb]
    ]
    while operands and operands[-1] == "-":
        operands.pop()
    text = " ".join([statement.verb, *operands]) + "."
    return f"{text}  {statement.trailing}" if statement.trailing else text


def format_word(text: str) -> str:
    """An operand, quoted if necessary."""
    return text if is_bare(text) else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _format_operand(value: Word | tuple[Word, ...]) -> str:
    if isinstance(value, Word):
        return format_word(value.text)
    return ";".join(format_word(word.text) for word in value) or "-"
