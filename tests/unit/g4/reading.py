"""Shared by the G4 tests: a vocabulary, and functions from text to errors."""

from __future__ import annotations

from mepof.g4 import Diagnostic, Source, check, parse, render
from mepof.g4.ast import Program
from mepof.g4.vocabulary import vocabulary

VOCABULARY = vocabulary()


def source(text: str) -> Source:
    return Source("p.g4", text)


def errors(text: str) -> list[Diagnostic]:
    """All errors in a program, as commands report them."""
    result = parse(source(text))
    return [*result.diagnostics, *check(result.program, VOCABULARY)]


def headlines(text: str) -> list[str]:
    """The first line of every rendered diagnostic."""
    return [line for line in render(errors(text), source(text)).splitlines() if ": error: " in line]


def sound(text: str) -> Program:
    """The program of a text without errors."""
    assert headlines(text) == []
    return parse(source(text)).program
