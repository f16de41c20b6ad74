"""Checks the names of apps, which are trained on and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from mepof.app.android import is_archive
from mepof.g4.ast import Adap, Eval, Goal, Opt, Profile, Program, Set, Statement, Word
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import is_path
from mepof.g4.settings import weight
from mepof.g4.source import Span
from mepof.g4.words import Vocabulary, lookup


def app(word: Word, click: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Check an app and the argument after its colon."""
    name, colon, text = word.text.partition(":")
    yield from described("app", word, name, vocabulary.apps)
    argument = vocabulary.arguments.get(click)
    known = is_path(name) or name in vocabulary.apps
    if not known or not colon or argument in (None, "script", "memory"):
        return
    span = word.part(len(name) + 1, len(word.text)) if text else word.span
    if argument == "none":
        yield Diagnostic(
            span,
            f"`{click}` takes no argument after an app",
            f"write {quote(name)} without a colon",
        )
        return
    try:
        weight(text)
    except ValueError as error:
        yield Diagnostic(span, f"invalid weight {quote(text)}", str(error))


def metric(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """A metric, or the path of a file that describes an app."""
    name, colon, text = word.text.partition(":")
    if is_path(name) and colon:
        yield Diagnostic(
            word.part(len(name) + 1, len(word.text)) if text else word.span,
            "`eval` measures each action of an app once",
            f"write {quote(name)} without a colon",
        )
    elif is_path(name) or name.endswith(".toml"):
        yield from described("app", word, name, vocabulary.apps)
    else:
        yield from lookup("metric", word, word.text, vocabulary.metrics)


def of_other_arch(statement: Statement, arch: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Apps and metrics whose programs guests of an architecture cannot run."""
    for span, name in named(statement):
        known = vocabulary.bound_to_arch.get(name, (arch,))
        if arch not in known:
            yield Diagnostic(
                span,
                f"{quote(name)} has no programs for {arch}",
                f"leave it out, or write `set arch {known[0]}` before the statement",
            )


def own_apps(program: Program) -> Iterator[tuple[Span, str]]:
    """The paths of descriptions of apps that a program trains on or measures."""
    for statement in program.statements:
        for span, name in named(statement):
            if is_path(name) and name.endswith(".toml"):
                yield span, name


def named(statement: Statement) -> Iterator[tuple[Span, str]]:
    """The apps and metrics of a statement, without what follows a colon."""
    match statement:
        case Opt(apps=words) | Profile(apps=words) | Adap(apps=words) | Eval(metrics=words):
            for word in words:
                name = word.text.partition(":")[0]
                yield word.part(0, len(name)), name


def spelt_alike(program: Program) -> Program:
    """The program in which each path of a description is written as where it first occurs, so that
    ``shop/app.toml`` and ``./shop/app.toml`` are one app."""
    first: dict[PurePosixPath, str] = {}

    def known(name: str) -> str:
        if not (is_path(name) and name.endswith(".toml")):
            return name
        return first.setdefault(PurePosixPath(name), name)

    statements = tuple(_respelt(each, known) for each in program.statements)
    return replace(program, statements=statements)


def _respelt(statement: Statement, known: Callable[[str], str]) -> Statement:
    def operand(word: Word) -> Word:
        name, colon, text = word.text.partition(":")
        return replace(word, text=known(name) + colon + text)

    match statement:
        case Opt(apps=words) | Profile(apps=words) | Adap(apps=words):
            return replace(statement, apps=tuple(map(operand, words)))
        case Eval(metrics=words):
            return replace(statement, metrics=tuple(map(operand, words)))
        case Goal(quantity=word):
            quantity, colon, group = word.text.partition(":")
            text = quantity + colon + known(group)
            return replace(statement, quantity=replace(word, text=text))
        case Set(key=key, value=word) if key.text == "without":
            text = ",".join(map(known, word.text.split(",")))
            return replace(statement, value=replace(word, text=text))
    return statement


def described(noun: str, word: Word, name: str, known: Iterable[str]) -> Iterator[Diagnostic]:
    """A known app or core, or the path of a file that describes one."""
    if is_path(name):
        if not name.endswith(".toml"):
            yield not_described(noun, name, word.part(0, len(name)))
    elif name.endswith(".toml"):
        yield Diagnostic(
            word.part(0, len(name)), f"unknown {noun} {quote(name)}", f"write {quote('./' + name)}"
        )
    else:
        yield from lookup(noun, word, name, known)


_LIST = (
    "install it (`adb install`, `adb install-multiple` of the APKs of one app, `bundletool` of a "
    "bundle), and name a file that lists its package (docs/android.md)"
)


def not_described(noun: str, path: str, span: Span) -> Diagnostic:
    return Diagnostic(
        span,
        f"the path {quote(path)} does not end in `.toml`",
        _LIST if noun == "app" and is_archive(path) else f"name the file that describes the {noun}",
    )
