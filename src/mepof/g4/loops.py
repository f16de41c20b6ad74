"""Whether what is profiled fits the ``base`` and the ``rounds`` in force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mepof.g4.ast import Adap, Opt, Profile, Program, Set, Statement, Word
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import Bindings, Made, algorithm_of
from mepof.g4.settings import NO_BASE, SETTINGS
from mepof.g4.words import Vocabulary


def rounds_in_force(program: Program) -> Iterator[tuple[Statement, int]]:
    """Each statement with the number that ``set rounds`` gives for it."""
    rounds = 1
    for statement in program.statements:
        if isinstance(statement, Set) and statement.key.text == "rounds":
            try:
                read = SETTINGS["rounds"].read(statement.value.text)
            except ValueError:
                read = 1  # reported where the setting is checked
            rounds = read if isinstance(read, int) else 1
        yield statement, rounds


@dataclass
class _Base:
    """The base in force.

    Attributes:
        algorithm: the lowest of its stack; None if only the file can tell.
    """

    word: Word
    algorithm: str | None
    used: bool = False


def unfit(
    program: Program,
    bindings: Bindings,
    vocabulary: Vocabulary,
) -> Iterator[Diagnostic]:
    """Statements that cannot be profiled on their base or in so many rounds, and bases without a
    statement."""
    base: _Base | None = None
    for index, (statement, rounds) in enumerate(rounds_in_force(program)):
        match statement:
            case Set(key=key, value=value) if key.text == "base":
                yield from _unused(base, "another base follows")
                base = None
                if value.text not in ("", NO_BASE):
                    base = _Base(value, _lowest(value, bindings, index))
            case Opt() | Profile() | Adap():
                lowest = statement.algorithm.text.partition("+")[0]
                if rounds > 1 and lowest not in vocabulary.repeating:
                    bound = lowest in vocabulary.bound_to_build
                    yield _fixed(statement.algorithm, lowest, bound)
                if base is not None:
                    base.used = True
                    yield from _mismatch(statement.algorithm, lowest, base, vocabulary)
    yield from _unused(base, "nothing is profiled after it")


def _lowest(word: Word, bindings: Bindings, index: int) -> str | None:
    """The lowest algorithm of a profile of the program."""
    made = bindings.resolve(word, "profile", index)
    algorithm = algorithm_of(made, bindings) if isinstance(made, Made) else None
    return None if algorithm is None else algorithm.partition("+")[0]


def _fixed(word: Word, lowest: str, bound: bool) -> Diagnostic:
    why = "its profile fits one build only" if bound else "a further round would count the same"
    return Diagnostic(
        word.part(0, len(lowest)),
        f"{quote(lowest)} has a fixed number of rounds",
        f"write `set rounds 1` before it: {why}",
    )


def _mismatch(word: Word, lowest: str, base: _Base, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """A stack whose lowest algorithm cannot take up the base."""
    span = word.part(0, len(lowest))
    if lowest in vocabulary.bound_to_build:
        yield Diagnostic(
            span,
            f"{quote(lowest)} cannot begin with a base: each of its profiles fits one build only",
            f"write it on top of another, as in `autofdo+{lowest}`, or `set base none` before it",
        )
    elif lowest in vocabulary.algorithms and lowest not in vocabulary.renewing:
        yield Diagnostic(
            span,
            f"{quote(lowest)} cannot begin with a base: its counts fit one source only",
            "write `set base none` before it: its profile is collected again",
        )
    elif base.algorithm is not None and base.algorithm != lowest:
        yield Diagnostic(
            span,
            f"the base {quote(base.word.text)} is a profile of {quote(base.algorithm)}, "
            f"not of {quote(lowest)}",
            "set a base of the same algorithm, or `set base none` before it",
        )


def _unused(base: _Base | None, why: str) -> Iterator[Diagnostic]:
    if base is not None and not base.used:
        yield Diagnostic(
            base.word.span,
            f"the base {quote(base.word.text)} is not used: {why}",
            "write `set base` above the `opt`, `profile` or `adap` that begins with it",
        )
