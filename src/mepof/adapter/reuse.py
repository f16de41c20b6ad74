"""Programs that are made of a program: with a profile that is there, with a scouted kernel, and to
compare images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS
from mepof.g4 import Source, bind, format_program, parse
from mepof.g4.ast import (
    Adap,
    Eval,
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
from mepof.g4.source import Span

_NOWHERE = Span(0, 0)
# What is about building and training, or about an image that is not a file.
_NOT_OF_IMAGES = frozenset(
    {
        *("name", "base", "perf-data", "relinked", "rounds", "scout", "decay"),
        *("package", "revision", "instrument", "hotness"),
    }
)
# What a program with profiles that are there sets by itself.
_OF_TRAINING = frozenset({"base", "hotness", "decay", "instrument"})


@dataclass(frozen=True)
class Trained:
    """A result of a program that has both a profile and an image.

    Attributes:
        suffix: of the file of its profile.
    """

    name: str
    algorithm: str
    suffix: str


def trained(text: str) -> tuple[Trained, ...] | None:
    """The results of a program whose profiles another program can use; None if one of its profiles
    cannot be used alone: a layout, the sum of several, or one without an image."""
    program = parse(Source("program", text)).program
    results = bind(program).by_statement
    found = []
    for index, statement in enumerate(program.statements):
        if isinstance(statement, Profile | Merge):
            return None
        if isinstance(statement, Opt | Adap):
            algorithm = statement.algorithm.text
            if (suffix := _suffix(algorithm)) is None:
                return None
            found.append(Trained(results[index].name, algorithm, suffix))
    return tuple(found)


def optimised(text: str) -> tuple[str, ...]:
    """The results of a program that have an image with a profile."""
    program = parse(Source("program", text)).program
    results = bind(program).by_statement
    return tuple(
        results[index].name
        for index, statement in enumerate(program.statements)
        if isinstance(statement, Opt | Adap | Recomp)
    )


def _suffix(algorithm: str) -> str | None:
    """The suffix by which a profile that is a file is one of an algorithm."""
    if algorithm not in ALGORITHMS.names():
        return None  # a stack
    names = ALGORITHMS.get(algorithm).profile_names
    suffix = _ending(names[0])
    known = ALGORITHMS.all().items()
    # As a program reads it: the first algorithm with such a file.
    meant = next((n for n, a in known if _ending(a.profile_names[0]) == suffix), None)
    return suffix if len(names) == 1 and meant == algorithm else None


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


def counting(results: Iterable[Trained]) -> frozenset[str]:
    """The results whose kernels count by themselves, in one round that needs nothing of other
    files: of such a profile, a part can be counted again."""
    algorithms = {each.name: ALGORITHMS.get(each.algorithm) for each in results}
    return frozenset(
        name for name, a in algorithms.items() if a.rounds == 1 and not a.records_branches
    )


def with_profiles(
    text: str, profiles: Mapping[str, Path], counted: Mapping[str, Sequence[str]] | None = None
) -> str:
    """A program that builds with profiles that are there, in place of training.

    Args:
        text: in which :func:`trained` found results.
        profiles: a file for each of these, by its name.
        counted: by result, the files that are counted again; the rest keeps the counts of the
            profile that is there. A result without such files is built with that alone.
    """
    program = parse(Source("program", text)).program
    results = bind(program).by_statement
    made: list[Statement] = []
    named = False
    for index, statement in enumerate(program.statements):
        if isinstance(statement, Set):
            if statement.key.text in _OF_TRAINING:
                continue  # it may name what has no profile any more
            named = named or statement.key.text == "name"
        elif isinstance(statement, Opt | Adap):
            name = results[index].name
            path = statement.path if isinstance(statement, Opt) else statement.url
            if not named:
                made.append(_set("name", name))
            profile = _word(str(profiles[name]))
            if files := (counted or {}).get(name):
                # The counts say what is hot, so that nothing is recorded beforehand.
                chosen = (("base", profile.text), ("hotness", profile.text), ("decay", "0"))
                made += [_set(*each) for each in (*chosen, ("instrument", ",".join(files)))]
                made.append(statement)
            else:
                made.append(Recomp(path, profile, statement.options, span=_NOWHERE))
            named = False
            continue
        elif not isinstance(statement, Goal):
            named = False
        made.append(statement)
    return format_program(Program(tuple(made)))


def scouted(text: str) -> str | None:
    """The program with scouted kernels throughout; None if they are anyway."""
    program = parse(Source("program", text)).program
    kept = tuple(s for s in program.statements if not _sets(s, "scout", "off"))
    if len(kept) == len(program.statements):
        return None
    return format_program(Program(kept))


def _sets(statement: Statement, key: str, value: str) -> bool:
    return (
        isinstance(statement, Set) and statement.key.text == key and statement.value.text == value
    )


def comparison(text: str, pairs: Mapping[Path, Path], worse: float) -> str:
    """A program that compares images in the way in which a program does.

    Args:
        pairs: the image of the last good release → the new one.
        worse: percent by which the geometric mean may be worse.
    """
    program = parse(Source("program", text)).program
    settings = [
        statement
        for statement in program.statements
        if isinstance(statement, Set) and statement.key.text not in _NOT_OF_IMAGES
    ]
    evals = [statement for statement in program.statements if isinstance(statement, Eval)]
    metrics = evals[-1].metrics if evals else ()
    goal = Goal(_word("geomean"), _word(f"{-worse:g}"), (), span=_NOWHERE)
    made = [
        Eval((_word(str(old)), _word(str(new))), metrics, span=_NOWHERE)
        for old, new in pairs.items()
    ]
    return format_program(Program((*_bare(settings), goal, *made)))


def _bare(settings: list[Set]) -> Iterator[Set]:
    for each in settings:
        yield Set(each.key, each.value, span=_NOWHERE)


def _set(key: str, value: str) -> Set:
    return Set(_word(key), _word(value), span=_NOWHERE)


def _word(text: str) -> Word:
    return Word(text, _NOWHERE)
