"""Names the results of a program and resolves what an operand refers to.

The checker and the compiler share these rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mepof.g4.ast import (
    Adap,
    Build,
    Check,
    Compare,
    Eval,
    Flash,
    Goal,
    Merge,
    Opt,
    Profile,
    Program,
    Recomp,
    Set,
    Statement,
    Word,
)
from mepof.g4.diagnostics import Diagnostic, nearest, quote
from mepof.g4.source import Span

Role = Literal["image", "profile"]

PLAIN = "plain"
_SUFFIX: dict[Role, str] = {"image": ".img", "profile": ".profdata"}
_MAKES: dict[str, tuple[Role, ...]] = {
    Opt.verb: ("image", "profile"),
    Adap.verb: ("image", "profile"),
    Recomp.verb: ("image",),
    Build.verb: ("image",),
    Profile.verb: ("profile",),
    Merge.verb: ("profile",),
}


def is_path(text: str) -> bool:
    """Whether an operand is a path, and not a name."""
    return "/" in text


@dataclass(frozen=True)
class Made:
    """A result of the program.

    Attributes:
        name: the name by which later statements refer to it.
        statement: index in ``Program.statements`` of the statement that makes it.
        roles: what it can be used as.
        span: the text that gives it its name.
    """

    name: str
    statement: int
    roles: tuple[Role, ...]
    span: Span


@dataclass(frozen=True)
class Plain:
    """The unoptimised kernel of the statement at this index."""

    statement: int


@dataclass(frozen=True)
class HostPath:
    """A file on the host."""

    path: str


Reference = Made | Plain | HostPath


@dataclass(frozen=True)
class Bindings:
    """The named results of a program in order, and the errors in their names."""

    program: Program
    results: tuple[Made, ...]
    diagnostics: tuple[Diagnostic, ...]

    @cached_property
    def _by_name(self) -> dict[str, Made]:
        return {made.name: made for made in reversed(self.results)}

    @cached_property
    def _kernels(self) -> list[int]:
        return [
            index
            for index, statement in enumerate(self.program.statements)
            if isinstance(statement, Opt | Profile | Adap | Recomp | Build)
        ]

    @cached_property
    def by_statement(self) -> dict[int, Made]:
        """The result of every statement that makes one, by the statement's index."""
        return {made.statement: made for made in self.results}

    def resolve(self, word: Word, role: Role, at: int) -> Reference | Diagnostic:
        """What an operand refers to, or why it refers to nothing.

        Args:
            role: what it is used as.
            at: index of the statement that it is in; only results of earlier ones count.
        """
        if is_path(word.text):
            return HostPath(word.text)
        name = self._named(word.text, role)
        if name == PLAIN:
            return self._plain(word, role, at)
        made = self._by_name.get(name)
        if made is None:
            return self._unknown(word, name, role, at)
        if role not in made.roles:
            return Diagnostic(word.span, f"{quote(name)} is {_a(made.roles[0])}, not {_a(role)}")
        if made.statement >= at:
            verb = self.program.statements[at].verb
            return Diagnostic(
                word.span,
                f"{quote(name)} is not made by an earlier statement",
                f"move this `{verb}` below the statement that makes it",
            )
        return made

    def _named(self, text: str, role: Role) -> str:
        """The name in a reference to a result: the text without its suffix.

        Each algorithm has its own suffix for profiles, so a profile may have any suffix.
        """
        stem, _, ending = text.rpartition(".")
        if role == "profile" and text not in self._by_name and stem in self._by_name:
            return text if f".{ending}" == _SUFFIX["image"] else stem
        return text.removesuffix(_SUFFIX[role])

    def _plain(self, word: Word, role: Role, at: int) -> Plain | Diagnostic:
        if role != "image":
            return Diagnostic(word.span, f"`{PLAIN}` is an image, not {_a(role)}")
        earlier = bisect_left(self._kernels, at)
        if earlier == 0:
            return Diagnostic(
                word.span,
                f"`{PLAIN}` needs an earlier statement that names a kernel",
                f"`{PLAIN}` is the unoptimised kernel of the last `opt`, `profile`, `adap`, "
                "`recomp` or `build` before it",
            )
        return Plain(self._kernels[earlier - 1])

    def _unknown(self, word: Word, name: str, role: Role, at: int) -> Diagnostic:
        known = [m.name for m in self.results if m.statement < at and role in m.roles]
        near = nearest(name, [*known, PLAIN] if role == "image" else known)
        suffix = word.text[len(name) :]
        return Diagnostic(
            word.span,
            f"unknown {role} {quote(word.text)}",
            f"did you mean `{near}{suffix}`?"
            if near
            else f"name a result of an earlier statement, or write the path of a file with a `/`: "
            f"{quote('./' + word.text)}",
        )


def references(statement: Statement) -> tuple[Role, tuple[Word, ...]]:
    """The words of a statement that each name a result or a file, and what that is; a setting may
    also name a profile."""
    match statement:
        case Merge():
            return "profile", statement.profiles
        case Recomp():
            return "profile", (statement.profile,)
        case Eval() | Check():
            return "image", statement.images
        case Flash():
            return "image", (statement.image,)
    return "image", ()


def made_profiles(statement: Merge, bindings: Bindings, index: int) -> Iterator[tuple[Word, Made]]:
    """The profiles that a merge takes from earlier statements."""
    for word in statement.profiles:
        made = bindings.resolve(word, "profile", index) if word.text else None
        if isinstance(made, Made):
            yield word, made


def algorithm_of(made: Made, bindings: Bindings) -> str | None:
    """The algorithms of a profile, joined by ``+``; None where only files tell."""
    match bindings.program.statements[made.statement]:
        case Opt() | Profile() | Adap() as statement:
            return statement.algorithm.text
        case Merge() as merge:
            parts = made_profiles(merge, bindings, made.statement)
            return next((name for _, part in parts if (name := algorithm_of(part, bindings))), None)
    return None


def bind(program: Program) -> Bindings:
    """Name the results of a program.

    A result has the name that the ``set name`` before its statement gives it. Without one, it
    is called after the verb, and numbered from the second: ``opt``, ``opt2``, ``opt3``.
    """
    results: list[Made] = []
    names: set[str] = set()
    diagnostics: list[Diagnostic] = []
    unnamed: Counter[str] = Counter()
    given: Word | None = None
    for index, statement in enumerate(program.statements):
        if isinstance(statement, Set):
            if statement.key.text == "name":
                diagnostics += _unused(given, "another name follows")
                given = statement.value
            continue
        if isinstance(statement, Goal | Compare):
            continue
        if isinstance(statement, Eval | Check | Flash):
            diagnostics += _unused(given, f"`{statement.verb}` makes no named result")
            given = None
            continue
        verb = statement.verb
        if given is not None:
            name, span = given.text, given.span
            given = None
        else:
            unnamed[verb] += 1
            name = verb if unnamed[verb] == 1 else f"{verb}{unnamed[verb]}"
            span = Span(statement.span.start, statement.span.start + len(verb))
        diagnostics += _taken(name, span, names)
        names.add(name)
        results.append(Made(name, index, _MAKES[verb], span))
    diagnostics += _unused(given, "no statement follows")
    return Bindings(program, tuple(results), tuple(diagnostics))


def _unused(name: Word | None, why: str) -> Iterator[Diagnostic]:
    if name is not None:
        yield Diagnostic(
            name.span,
            f"the name {quote(name.text)} is not used: {why}",
            "`set name` names the result of the next statement",
        )


def _taken(name: str, span: Span, names: set[str]) -> Iterator[Diagnostic]:
    if name == PLAIN:
        yield Diagnostic(
            span, f"`{PLAIN}` is the name of the unoptimised image", "choose another name"
        )
    elif name in names:
        yield Diagnostic(
            span,
            f"another result is already called {quote(name)}",
            "give it another name with `set name`",
        )


def _a(role: Role) -> str:
    return "an image" if role == "image" else "a profile"
