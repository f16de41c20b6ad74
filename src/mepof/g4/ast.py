"""The syntax tree of a G4 program.

The fields of a statement, in order, are its operands: ``Word`` is one operand and
``tuple[Word, ...]`` a list. Parser, formatter and messages all read the grammar from them.
Spans take no part in equality, so that trees of differently laid out programs are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, get_type_hints

from mepof.g4.source import Span


@dataclass(frozen=True)
class Word:
    """An operand or an item of a list, without quotes and escapes; its span has them."""

    text: str
    span: Span = field(compare=False)

    def part(self, start: int, end: int) -> Span:
        """Where ``text[start:end]`` stands; the whole word if it was quoted."""
        if self.span.end - self.span.start != len(self.text):
            return self.span
        return Span(self.span.start + start, self.span.start + end)


@dataclass(frozen=True, kw_only=True)
class _Placed:
    """Where a statement stands, from verb to ``.``, and the comments that belong to it.

    Attributes:
        leading: the lines before it: comments with their ``#``, and ``""`` for a blank line.
        trailing: the comment after it on its line, with its ``#``, or ``""``.
    """

    span: Span = field(compare=False)
    leading: tuple[str, ...] = ()
    trailing: str = ""


@dataclass(frozen=True)
class Opt(_Placed):
    """Profile a kernel and recompile it with its profile."""

    verb: ClassVar[str] = "opt"
    path: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Profile(_Placed):
    """Profile a kernel."""

    verb: ClassVar[str] = "profile"
    path: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]


@dataclass(frozen=True)
class Merge(_Placed):
    """Merge profiles, weighted if there are weights."""

    verb: ClassVar[str] = "merge"
    profiles: tuple[Word, ...]
    weights: tuple[Word, ...]


@dataclass(frozen=True)
class Adap(_Placed):
    """Fetch a kernel and do to it what ``opt`` does."""

    verb: ClassVar[str] = "adap"
    url: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Recomp(_Placed):
    """Recompile a kernel with a given profile."""

    verb: ClassVar[str] = "recomp"
    path: Word
    profile: Word
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Eval(_Placed):
    """Measure images; the first is the baseline."""

    verb: ClassVar[str] = "eval"
    images: tuple[Word, ...]
    metrics: tuple[Word, ...]


@dataclass(frozen=True)
class Set(_Placed):
    """Set a value for the statements that follow."""

    verb: ClassVar[str] = "set"
    key: Word
    value: Word


Statement = Opt | Profile | Merge | Adap | Recomp | Eval | Set

STATEMENTS: dict[str, type[Statement]] = {
    cls.verb: cls for cls in (Opt, Profile, Merge, Adap, Recomp, Eval, Set)
}


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        closing: comment lines after the last statement, as in ``leading``.
        complete: false if the parser had to leave out statements that it did not understand.
    """

    statements: tuple[Statement, ...]
    closing: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Operand:
    """A place in the grammar of a statement: its field, and whether it takes a list."""

    name: str
    many: bool

    @property
    def noun(self) -> str:
        """What one of it is called: the field ``apps`` holds items called ``app``."""
        return self.name.removesuffix("s") if self.many else self.name


def _operands(cls: type[Statement]) -> tuple[Operand, ...]:
    hints = get_type_hints(cls)
    return tuple(Operand(f.name, hints[f.name] is not Word) for f in fields(cls) if not f.kw_only)


OPERANDS = {verb: _operands(cls) for verb, cls in STATEMENTS.items()}
"""The grammar of every statement."""


def form_of(verb: str) -> str:
    """The grammar of a statement as the reference writes it: ``recomp path profile option*.``"""
    return f"{verb} {' '.join(o.noun + '*' * o.many for o in OPERANDS[verb])}."
