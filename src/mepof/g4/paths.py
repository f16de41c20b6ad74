"""Where a program names files of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mepof.g4.ast import Adap, Eval, Goal, Opt, Profile, Program, Set, Word, kernel_of
from mepof.g4.names import is_path, references
from mepof.g4.settings import config, paths, toolchain
from mepof.g4.source import Span
from mepof.g4.variants import Argument
from mepof.source.protocol import source_of


def host_paths(program: Program, arguments: Mapping[str, Argument]) -> Iterator[tuple[Span, str]]:
    """The paths in a program that passed the checker, as its plan has them, and their positions.

    Args:
        arguments: for each scenario, what may follow an app and a colon.
    """
    for statement in program.statements:
        if (kernel := kernel_of(statement)) is not None:
            yield from _source(kernel)
        for word in references(statement)[1]:
            yield from _path(word, 0, word.text)
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
            case Eval(metrics=metrics):
                for word in metrics:
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
            yield from (
                (span, part) for span, part in word.parts(config(word.text)) if is_path(part)
            )
        case "package":
            name, _, file = word.text.partition(":")
            yield word.part(len(name) + 1, len(word.text)), file
        case "toolchain":
            family, _, directory = toolchain(word.text).partition(":")
            yield word.part(len(family) + 1, len(word.text)), directory
        case "perf-data":
            yield from word.parts(paths(word.text))
