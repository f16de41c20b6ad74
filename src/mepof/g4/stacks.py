"""Checks algorithms, stacks of them, and whether a toolchain supports them."""

from __future__ import annotations

from collections.abc import Iterator

from mepof.g4 import loops
from mepof.g4.ast import (
    Adap,
    Build,
    Merge,
    Opt,
    Profile,
    Program,
    Recomp,
    Set,
    Statement,
    Word,
    kernel_of,
)
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import Bindings, algorithm_of, made_profiles
from mepof.g4.settings import family_of
from mepof.g4.source import Span
from mepof.g4.words import Vocabulary, lookup


def algorithm(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """An algorithm, or a stack of them joined by ``+``."""
    if word.text and "" in word.text.split("+"):
        yield Diagnostic(
            word.span,
            f"{quote(word.text)} is missing an algorithm next to `+`",
            "write a stack as in `autofdo+propeller`",
        )
        return
    for span, part in _algorithms(word):
        yield from lookup("algorithm", word, part, vocabulary.algorithms, span)
    yield from _stack(tuple(_algorithms(word)), vocabulary)


def _stack(parts: tuple[tuple[Span, str], ...], vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Check that the algorithms of a stack can build on each other."""
    seen: set[str] = set()
    for number, (span, part) in enumerate(parts):
        if part in seen:
            yield Diagnostic(span, f"{quote(part)} is already in the stack", "write it once")
        elif part in vocabulary.bound_to_build and number + 1 < len(parts):
            yield Diagnostic(
                span,
                f"nothing can build on {quote(part)}: its profile fits only one build",
                f"write {quote(part)} last",
            )
        seen.add(part)


def _algorithms(stack: Word) -> Iterator[tuple[Span, str]]:
    """The algorithms of a stack, with their spans."""
    return stack.parts(stack.text.split("+"))


def unsupported(
    statement: Statement, toolchain: str, vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """Algorithms and options that the toolchain does not support."""
    if isinstance(statement, Opt | Profile | Adap):
        for span, part in _algorithms(statement.algorithm):
            yield from _unable(span, part, toolchain, vocabulary)
    if isinstance(statement, Opt | Adap | Recomp | Build):
        for word in statement.options:
            yield from _unable(word.span, word.text, toolchain, vocabulary)


def unmerged(
    statement: Merge, bindings: Bindings, index: int, toolchain: str, vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """Profiles of the program that the toolchain does not read."""
    for word, made in made_profiles(statement, bindings, index):
        for part in (algorithm_of(made, bindings) or "").split("+"):
            yield from _unable(word.span, part, toolchain, vocabulary)


def _unable(span: Span, text: str, toolchain: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """An algorithm or option that the toolchain does not support."""
    has = vocabulary.capabilities.get(family_of(toolchain))
    required = vocabulary.requirements.get(text, frozenset())
    if has is None or not (missing := sorted(required - has)):
        return
    family, _, version = toolchain.rpartition("-")
    # A family's name may stand for the version in question.
    able = [
        name
        for name, all_ in vocabulary.capabilities.items()
        if required <= all_ and name != family
    ]
    # The names of versions are in order, the oldest last.
    newer = [name for name in able if _is_newer(name, family, version)]
    families = [name for name in able if not name.rpartition("-")[2].isdigit()]
    needed = f"`{newer[-1]}` or later" if newer else " or ".join(families or missing)
    yield Diagnostic(
        span,
        f"`{text}` needs {needed}, and the toolchain is `{toolchain}`",
        f"write `set toolchain {(newer[-1:] or able)[0]}` before it" if able else None,
    )


def not_for_arch(
    statement: Statement, arch: str, toolchain: str, vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """A kernel for an architecture that the toolchain does not build kernels for."""
    kernel, able = kernel_of(statement), vocabulary.builders.get(arch, ())
    family = family_of(toolchain)
    if kernel is not None and able and family in vocabulary.toolchains and family not in able:
        yield Diagnostic(
            kernel.span,
            f"`{toolchain}` does not build kernels for {arch}",
            f"write `set toolchain {able[0]}` before it",
        )


def profiles_at_once(stack: Word, toolchain: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Algorithms of a stack whose profiles the toolchain cannot use in one build."""
    exclusive = vocabulary.exclusive.get(family_of(toolchain), frozenset())
    first: str | None = None
    for span, part in _algorithms(stack):
        if exclusive.isdisjoint(vocabulary.requirements.get(part, ())):
            continue
        if first is None:
            first = part
        elif part != first:  # the same again is reported as such
            yield Diagnostic(
                span,
                f"{quote(part)} cannot build on {quote(first)}: "
                f"{quote(toolchain)} uses the profile of one of them only",
                "choose one, and compare both by `eval`",
            )


def unused_traces(program: Program, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Branch traces that no round of the statements up to the next setting uses."""
    given: Word | None = None
    rounds: list[int] = []

    def unused() -> Iterator[Diagnostic]:
        traces = given.text.split(",") if given is not None else []
        if given is not None and all(traces) and rounds and len(traces) > max(rounds):
            yield Diagnostic(
                given.span,
                f"no round uses {quote(traces[max(rounds)])}",
                "give one branch trace for each round that records branches; those of several "
                "machines are one directory",
            )

    recorded = recorded_rounds(program, vocabulary)
    for index, statement in enumerate(program.statements):
        if isinstance(statement, Set) and statement.key.text == "perf-data":
            yield from unused()
            given, rounds = statement.value, []
        elif index in recorded:
            rounds.append(recorded[index])
    yield from unused()


def recorded_rounds(program: Program, vocabulary: Vocabulary) -> dict[int, int]:
    """The number of rounds in which each statement that profiles needs a branch trace, by the
    statement's index."""
    found: dict[int, int] = {}
    for index, (statement, rounds) in enumerate(loops.rounds_in_force(program)):
        if isinstance(statement, Opt | Profile | Adap):
            lowest, *others = (
                vocabulary.recorded_rounds.get(part, 0)
                for part in statement.algorithm.text.split("+")
            )
            found[index] = lowest * rounds + sum(others)
    return found


def _is_newer(name: str, family: str, version: str) -> bool:
    """Whether a toolchain is of a family, and newer than a version."""
    own, _, other = name.rpartition("-")
    return own == family and other.isdecimal() and version.isdecimal() and int(other) > int(version)
