"""Checks each word of a statement by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mepof.disk import existing
from mepof.errors import InputError
from mepof.g4 import apps, checks, goals, instrumentation, pairs, stacks
from mepof.g4.ast import (
    OPERANDS,
    Adap,
    Build,
    Check,
    Compare,
    Eval,
    Goal,
    Merge,
    Opt,
    Profile,
    Recomp,
    Set,
    Statement,
    Word,
    kernel_of,
)
from mepof.g4.diagnostics import Diagnostic, quote, suggestion
from mepof.g4.names import is_path
from mepof.g4.settings import NO_PACKAGE, SETTINGS, weight
from mepof.g4.words import Vocabulary, duplicates, lookup
from mepof.kernel import kconfig
from mepof.source.protocol import parse
from mepof.toolchain.named import meant


def empty_operands(statement: Statement) -> Iterator[Diagnostic]:
    for operand in OPERANDS[statement.verb]:
        value: Word | tuple[Word, ...] = getattr(statement, operand.name)
        for word in (value,) if isinstance(value, Word) else value:
            if not word.text:
                yield Diagnostic(word.span, f"the {operand.noun} is empty")


def wrong_words(statement: Statement, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    if (kernel := kernel_of(statement)) is not None:
        yield from _source(kernel)
    match statement:
        case Opt() | Profile() | Adap():
            yield from stacks.algorithm(statement.algorithm, vocabulary)
            yield from lookup("click", statement.click, statement.click.text, vocabulary.clicks)
            for app in statement.apps:
                yield from apps.app(app, statement.click.text, vocabulary)
        case Merge():
            yield from _merge(statement)
        case Eval():
            if not statement.images:
                yield Diagnostic(statement.span, "`eval` needs at least one image")
            for metric in statement.metrics:
                yield from apps.metric(metric, vocabulary)
            yield from duplicates(statement.metrics)
        case Check():
            yield from _check(statement, vocabulary)
        case Set():
            yield from _setting(statement, vocabulary)
        case Goal():
            yield from _goal(statement, vocabulary)
        case Compare():
            yield from pairs.wrong_words(
                statement, vocabulary.cases, vocabulary.quantities_of_cases
            )
            yield from duplicates(statement.metrics)
    if isinstance(statement, Opt | Adap | Recomp | Build):
        for option in statement.options:
            yield from lookup("option", option, option.text, vocabulary.options)
        yield from duplicates(statement.options)
        yield from _conflicts(statement.options, vocabulary)


def _source(word: Word) -> Iterator[Diagnostic]:
    """Check the form of a kernel's address; nothing is read."""
    if not word.text:
        return
    try:
        parse(word.text)
    except InputError as error:
        yield Diagnostic(word.span, error.message, error.remedy)


def _merge(statement: Merge) -> Iterator[Diagnostic]:
    profiles, weights = statement.profiles, statement.weights
    if not profiles:
        yield Diagnostic(statement.span, "`merge` needs at least one profile")
    elif weights and len(weights) != len(profiles):
        yield Diagnostic(
            weights[0].span.to(weights[-1].span),
            f"expected one weight per profile, found {len(weights)} for {len(profiles)}",
            "give every profile a weight, or none",
        )
    for word in weights:
        try:
            weight(word.text)
        except ValueError as error:
            yield Diagnostic(word.span, f"invalid weight {quote(word.text)}", str(error))


def _conflicts(options: tuple[Word, ...], vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    for noun, group in vocabulary.option_groups.items():
        chosen = [word for word in options if word.text in group]
        for other in chosen[1:]:
            if other != chosen[0]:
                yield Diagnostic(
                    other.span,
                    f"`{other.text}` conflicts with `{chosen[0].text}`",
                    f"choose one {noun}",
                )


def _check(statement: Check, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    if len(statement.images) < 2:
        yield Diagnostic(
            statement.span,
            "`check` needs at least two images",
            "name the baseline first, such as `check plain.img;opt.img kselftest.`",
        )
    for word in statement.gates:
        name, colon, collection = word.text.partition(":")
        yield from lookup("gate", word, name, vocabulary.gates)
        if not colon or name not in vocabulary.gates:
            continue
        span = word.part(len(name) + 1, len(word.text)) if collection else word.span
        if name != checks.KSELFTEST:
            yield Diagnostic(span, f"`{name}` has no parts", f"write {quote(name)} without a colon")
        elif not collection:
            yield Diagnostic(span, "the name of a collection is missing after the colon")
        else:
            yield from lookup("collection", word, collection, vocabulary.collections, span)
    yield from duplicates(statement.gates)


def _goal(statement: Goal, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    word, bound = statement.quantity, statement.bound
    quantity, group = goals.quantity_of(statement)
    yield from lookup("goal", word, quantity, vocabulary.quantities)
    if bound.text:
        try:
            goals.check_bound(quantity, bound.text)
        except ValueError as error:
            yield Diagnostic(bound.span, f"invalid bound {quote(bound.text)}", str(error))
    if group is not None:
        span = word.part(len(quantity) + 1, len(word.text)) if group else word.span
        if not group:
            remedy = "write a metric of `eval`, such as `geomean:pipe`"
            yield Diagnostic(span, f"{quote(word.text)} is missing its group of cases", remedy)
        elif quantity in vocabulary.sizes:
            yield Diagnostic(span, f"`{quantity}` is a size, which takes no group of cases")
        elif is_path(group):
            if not group.endswith(".toml"):
                yield apps.not_described("app", group, span)
        else:
            yield from lookup("metric", word, group, vocabulary.metrics, span)
    if quantity in vocabulary.sizes and statement.metrics:
        first, last = statement.metrics[0], statement.metrics[-1]
        yield Diagnostic(first.span.to(last.span), f"`{quantity}` is a size, which takes no metric")
        return
    for metric in statement.metrics:
        yield from lookup("metric", metric, metric.text, vocabulary.costs)
    yield from duplicates(statement.metrics)


def _package(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    name, colon, _ = word.text.partition(":")
    yield from lookup("format of packages", word, name, (NO_PACKAGE, *vocabulary.packages))
    if colon and not vocabulary.packages.get(name, True):
        span = word.part(len(name) + 1, len(word.text))
        yield Diagnostic(span, f"`{name}` takes no file", f"write {quote(name)} without a colon")


def _setting(statement: Set, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    key, word = statement.key, statement.value
    setting = SETTINGS.get(key.text)
    if setting is None:
        yield from lookup("setting", key, key.text, SETTINGS)
        return
    if not word.text:
        return  # reported as an empty operand
    try:
        value = setting.read(word.text)
    except ValueError as error:
        yield Diagnostic(word.span, f"invalid {key.text} {quote(word.text)}", str(error))
        return
    if key.text == "package":
        yield from _package(word, vocabulary)
    if key.text == "instrument":
        yield from instrumentation.wrong_words(word, vocabulary.subsystems)
    if setting.choices is None:
        return
    known: tuple[str, ...] = getattr(vocabulary, setting.choices)
    if key.text == "toolchain":
        yield from _toolchain(word, known)
        return
    if key.text == "core":
        yield from apps.described("core", word, word.text, known)
        return
    texts = map(str, value) if isinstance(value, tuple) else (str(value),)
    for span, part in word.parts(texts):
        is_config = key.text == "config"
        if is_config and part not in known and (named := kconfig.trees(part)) and "/" not in part:
            yield Diagnostic(span, f"unknown config {quote(part)}", named)
        elif not (is_config and "/" in part):
            yield from lookup(setting.noun or key.text, word, part, known, span)


def _toolchain(word: Word, known: Collection[str]) -> Iterator[Diagnostic]:
    """A toolchain. The name that is most like that of an old version is one that does not exist
    yet, so the range is named instead."""
    families = [name for name in known if name.rpartition("-")[0] not in known]
    name, colon, _ = word.text.partition(":")
    if colon:
        yield from lookup("toolchain", word, name, families)
        return
    family, dash, version = name.rpartition("-")
    remedy = suggestion(name, known)
    if is_path(name) or ((here := existing(name)) and here.is_dir()):
        where = name if is_path(name) else f"./{name}"
        remedy = f"write {' or '.join(quote(f'{each}:{where}') for each in families)}"
    elif dash and version.isdecimal() and family in known:
        versions = [name.removeprefix(f"{family}-") for name in known]
        numbers = [int(number) for number in versions if number.isdecimal()]
        remedy = f"known: {family}-{min(numbers)} to {family}-{max(numbers)}"
    elif near := meant(name):
        remedy = f"did you mean {quote(near)}?"
    if name not in known:
        yield Diagnostic(word.span, f"unknown toolchain {quote(name)}", remedy)
