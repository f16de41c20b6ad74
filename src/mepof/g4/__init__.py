"""G4, the language of programs: parses text, checks it and compiles it to a plan."""

from mepof.g4.checker import check
from mepof.g4.diagnostics import Diagnostic, render
from mepof.g4.formatter import format_program
from mepof.g4.names import bind
from mepof.g4.parser import ParseResult, parse
from mepof.g4.source import Source
from mepof.g4.words import Vocabulary

__all__ = [
    "Diagnostic",
    "ParseResult",
    "Source",
    "Vocabulary",
    "bind",
    "check",
    "format_program",
    "parse",
    "render",
]
