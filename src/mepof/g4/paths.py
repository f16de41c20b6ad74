"""Where a program names files of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mepof.g4.ast import (
    Adap,
    Build,
    Check,
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
from mepof.g4.names import is_path
from mepof.g4.settings import config, paths
from mepof.g4.source import Span
from mepof.g4.variants import Argument
from mepof.source.protocol import source_of


def host_paths(program: Program, arguments: Mapping[str, Argument]) -> Iterator[tuple[Span, str]]:
    """The paths in a program that passed the checker, as its plan has them, and their positions.

    Args:
        arguments: for each scenario, what may follow an app and a colon.
    """
    for statement in program.statements:
        match statement:
            case Opt(path=kernel) | Profile(path=kernel) | Recomp(path=kernel) | Build(path=kernel):
                yield from _source(kernel)
            case Adap(url=kernel):
                yield from _source(kernel)
        match statement:
            case Opt() | Profile() | Adap():
                follows = arguments.get(statement.click.text, "script")
                for app in statement.apps:
                    yield from _app(app, follows)
            case Goal(quantity=word):
                quantity, _, group = word.text.partition(":")
                yield from _path(word, len(quantity) + 1, group)
            case Set(key=key, value=word):
                yield from _setting(key.text, word)
            case _:
                for word in _references(statement):
                    yield from _path(word, 0, word.text)


def _path(word: Word, start: int, text: str) -> Iterator[tuple[Span, str]]:
    """A part of a word, if it is a path and not a name."""
    if is_path(text):
        yield word.part(start, start + len(text)), text


def _source(word: Word) -> Iterator[tuple[Span, str]]:
    if (path := source_of(word.text).host(word.text)) is not None:
        yield word.span, path


def _app(word: Word, follows: Argument) -> Iterator[tuple[Span, str]]:
    name, _, argument = word.text.partition(":")
    yield from _path(word, 0, name)
    if argument and follows != "weight":
        yield word.part(len(name) + 1, len(word.text)), argument


def _setting(key: str, word: Word) -> Iterator[tuple[Span, str]]:
    match key:
        case "base" | "core" | "hotness":
            yield from _path(word, 0, word.text)
        case "config":
            at = 0
            for part in config(word.text):
                yield from _path(word, at, part)
                at += len(part) + 1
        case "package":
            name, _, file = word.text.partition(":")
            yield word.part(len(name) + 1, len(word.text)), file
        case "perf-data":
            at = 0
            for path in paths(word.text):
                yield word.part(at, at + len(path)), path
                at += len(path) + 1


def _references(statement: Statement) -> tuple[Word, ...]:
    """Words that name a result, a metric or a path."""
    match statement:
        case Merge():
            return statement.profiles
        case Recomp():
            return (statement.profile,)
        case Eval():
            return (*statement.images, *statement.metrics)
        case Check():
            return statement.images
        case Flash():
            return (statement.image,)
        case _:
            return ()
