"""The syntax tree of a G4 program.

The fields of a statement, in order, are its operands: ``Word`` is one operand and
``tuple[Word, ...]`` a list. Parser, formatter and messages all read the grammar from them.
Spans are not compared, so that programs that differ only in layout have equal trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import ClassVar, get_type_hints

from mepof.g4.source import Span


@dataclass(frozen=True)
class Word:
    """An operand or an item of a list, without quotes and escapes; the span includes them."""

    text: str
    span: Span = field(compare=False)

    def part(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``; that of the whole word if it was quoted."""
        if self.span.end - self.span.start != len(self.text):
            return self.span
        return Span(self.span.start + start, self.span.start + end)

    def parts(self, texts: Iterable[str]) -> Iterator[tuple[Span, str]]:
        """The texts that the word consists of, with a character between any two, and their
        spans."""
        at = 0
        for text in texts:
            yield self.part(at, at + len(text)), text
            at += len(text) + 1


@dataclass(frozen=True, kw_only=True)
class _Located:
    """The span of a statement, from verb to ``.``, and the comments attached to it.

    Attributes:
        leading: the lines before it: comments with their ``#``, and ``""`` for a blank line.
        trailing: the comment after it on its line, with its ``#``, or ``""``.
    """

    span: Span = field(compare=False)
    leading: tuple[str, ...] = ()
    trailing: str = ""


@dataclass(frozen=True)
class Opt(_Located):
    """Profile a kernel and recompile it with its profile."""

    verb: ClassVar[str] = "opt"
    path: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Profile(_Located):
    """Profile a kernel."""

    verb: ClassVar[str] = "profile"
    path: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]


@dataclass(frozen=True)
class Merge(_Located):
    """Merge profiles, weighted if there are weights."""

    verb: ClassVar[str] = "merge"
    profiles: tuple[Word, ...]
    weights: tuple[Word, ...]


@dataclass(frozen=True)
class Adap(_Located):
    """Fetch a kernel and do to it what ``opt`` does."""

    verb: ClassVar[str] = "adap"
    url: Word
    algorithm: Word
    click: Word
    apps: tuple[Word, ...]
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Recomp(_Located):
    """Recompile a kernel with a given profile."""

    verb: ClassVar[str] = "recomp"
    path: Word
    profile: Word
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Build(_Located):
    """Build a kernel without a profile."""

    verb: ClassVar[str] = "build"
    path: Word
    options: tuple[Word, ...]


@dataclass(frozen=True)
class Eval(_Located):
    """Measure images; the first is the baseline."""

    verb: ClassVar[str] = "eval"
    images: tuple[Word, ...]
    metrics: tuple[Word, ...]


@dataclass(frozen=True)
class Check(_Located):
    """Run tests on images; those that the first passes, the others must pass."""

    verb: ClassVar[str] = "check"
    images: tuple[Word, ...]
    gates: tuple[Word, ...]


@dataclass(frozen=True)
class Flash(_Located):
    """Flash an image to the device."""

    verb: ClassVar[str] = "flash"
    image: Word


@dataclass(frozen=True)
class Set(_Located):
    """Set a value for the statements that follow."""

    verb: ClassVar[str] = "set"
    key: Word
    value: Word


@dataclass(frozen=True)
class Goal(_Located):
    """Set a bound that the images of the ``eval`` statements that follow must keep."""

    verb: ClassVar[str] = "goal"
    quantity: Word
    bound: Word
    metrics: tuple[Word, ...]


@dataclass(frozen=True)
class Compare(_Located):
    """Compare two cases with each other in the ``eval`` statements that follow."""

    verb: ClassVar[str] = "compare"
    first: Word
    second: Word
    way: Word
    metrics: tuple[Word, ...]


Statement = (
    Opt | Profile | Merge | Adap | Recomp | Build | Eval | Check | Flash | Set | Goal | Compare
)

STATEMENTS: dict[str, type[Statement]] = {
    cls.verb: cls
    for cls in (Opt, Profile, Merge, Adap, Recomp, Build, Eval, Check, Flash, Set, Goal, Compare)
}


def kernel_of(statement: Statement) -> Word | None:
    """The address of the kernel that a statement is about, if it is about one."""
    match statement:
        case Opt(path=kernel) | Profile(path=kernel) | Recomp(path=kernel) | Build(path=kernel):
            return kernel
        case Adap(url=kernel):
            return kernel
    return None


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        closing: comment lines after the last statement, as in ``leading``.
        complete: false if the parser left out statements that it could not parse.
    """

    statements: tuple[Statement, ...]
    closing: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Operand:
    """An operand in the grammar of a statement: its field, and whether it takes a list."""

    name: str
    many: bool

    @property
    def noun(self) -> str:
        """The name of a single item: the field ``apps`` holds items called ``app``."""
        return self.name.removesuffix("s") if self.many else self.name


def _operands(cls: type[Statement]) -> tuple[Operand, ...]:
    hints = get_type_hints(cls)
    return tuple(Operand(f.name, hints[f.name] is not Word) for f in fields(cls) if not f.kw_only)


OPERANDS = {verb: _operands(cls) for verb, cls in STATEMENTS.items()}
"""The grammar of every statement."""


def form_of(verb: str) -> str:
    """The grammar of a statement as the reference writes it: ``recomp path profile option*.``"""
    return f"{verb} {' '.join(o.noun + '*' * o.many for o in OPERANDS[verb])}."
