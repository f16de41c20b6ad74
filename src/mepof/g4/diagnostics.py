"""Errors and warnings in a program, with location and remedy, rendered as plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from mepof.errors import listed
from mepof.g4.source import Source, Span

_MAX_QUOTED = 60
_MAX_LINE = 100
_MAX_KNOWN = 24
# Words that people use, and those of programs for the same.
_SYNONYMS = {
    "boots": "repetitions",
    "repeat": "repetitions",
    "runs": "repetitions",
    "iterations": "repetitions",
    "architecture": "arch",
    "amd64": "x86-64",
    "x64": "x86-64",
    "intel64": "x86-64",
    "armhf": "arm",
    "armel": "arm",
    "compiler": "toolchain",
    "defconfig": "config",
    "kernel-config": "config",
    "kconfig": "config",
    "accuracy": "precision",
    "random-seed": "seed",
    "time-limit": "budget",
    "timeout": "budget",
    "benchmark": "eval",
    "measure": "eval",
    "compile": "build",
    "optimise": "opt",
    "optimize": "opt",
}


@dataclass(frozen=True)
class Diagnostic:
    """An error in a program, or a warning.

    Args:
        span: the part of the source that is wrong.
        message: one line that says what is wrong.
        help: one line with a remedy, if one is known.
    """

    span: Span
    message: str
    help: str | None = None


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted by position, without duplicates."""
    return tuple(sorted(set(diagnostics), key=lambda d: (d.span.start, d.span.end, d.message)))


def visible(text: str) -> str:
    """The text with U+FFFD for characters that are invisible or control a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def quote(text: str) -> str:
    """Text of the program as messages quote it."""
    shown = text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 1] + "…"
    return f"`{visible(shown)}`"


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is most similar to a word, ignoring case, if any is similar."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(word[:_MAX_QUOTED].lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def suggestion(word: str, candidates: Iterable[str]) -> str:
    """The help for an unknown word: the known word for the same thing or the nearest one, or what
    is known."""
    known = sorted(candidates)
    meant = _SYNONYMS.get(word.lower().replace("_", "-"))
    near = meant if meant in known else nearest(word, known)
    return f"did you mean `{near}`?" if near else "known: " + (listed(known, _MAX_KNOWN) or "none")


def render(
    diagnostics: Iterable[Diagnostic], source: Source, limit: int = 20, kind: str = "error"
) -> str:
    """Diagnostics as text for a terminal or a log, in the order of the text.

    Each names file, line and column (in characters, from 1), and shows the line with carets
    under the wrong part, and the help. The text does not end in a newline.

    Args:
        limit: how many to show; the others are only counted.
        kind: what each is, ``error`` or ``warning``.
    """
    ordered = in_order(diagnostics)
    blocks = [_render_one(diagnostic, source, kind) for diagnostic in ordered[:limit]]
    if (rest := len(ordered) - limit) > 0:
        blocks.append(f"{visible(source.name)}: {rest} more {kind}{'s' * (rest > 1)}")
    return "\n\n".join(blocks)


def _render_one(diagnostic: Diagnostic, source: Source, kind: str) -> str:
    number, column = source.position(diagnostic.span.start)
    line = source.line(number)
    start = column - 1
    length = max(1, min(diagnostic.span.end - diagnostic.span.start, len(line) - start))
    before, marked, after = line[:start], line[start : start + length], line[start + length :]
    if len(line) > _MAX_LINE:  # show the neighbourhood of the error
        margin = _MAX_LINE // 2
        before = "…" + before[-margin:] if len(before) > margin else before
        marked, after = (marked[:margin] + "…", "") if len(marked) > margin else (marked, after)
        after = after[:margin] + "…" if len(after) > margin else after
    before, marked, after = (visible(part.replace("\t", " ")) for part in (before, marked, after))
    gutter = " " * len(str(number))
    lines = [
        f"{visible(source.name)}:{number}:{column}: {kind}: {diagnostic.message}",
        f"  {number} | {before}{marked}{after}".rstrip(),
        f"  {gutter} | {' ' * _width(before)}{'^' * max(1, _width(marked))}",
    ]
    if diagnostic.help is not None:
        lines.append(f"  {gutter} help: {diagnostic.help}")
    return "\n".join(lines)


def _width(text: str) -> int:
    """The number of columns that the text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
