"""Checks that a parsed program makes sense: its words are known, its values and names valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mepof.g4 import apps, checks, goals, instrumentation, loops, operands, pairs, stacks
from mepof.g4.ast import (
    Adap,
    Check,
    Eval,
    Flash,
    Merge,
    Opt,
    Profile,
    Program,
    Set,
    Statement,
    Word,
)
from mepof.g4.diagnostics import Diagnostic, in_order, quote
from mepof.g4.names import (
    Bindings,
    HostPath,
    Made,
    Plain,
    algorithm_of,
    bind,
    made_profiles,
    references,
)
from mepof.g4.settings import NO_PROFILE, Settings
from mepof.g4.words import Vocabulary


def check(program: Program, vocabulary: Vocabulary) -> tuple[Diagnostic, ...]:
    """Everything that is wrong with the meaning of a program, in the order of the text.

    Names of results are checked only in a complete program: a statement that could not be
    parsed may have made the missing one.
    """
    bindings = bind(program)
    found: list[Diagnostic] = []
    relinked = False
    toolchain = vocabulary.default_toolchain
    device = Settings().device
    archs = tuple(_archs_in_force(program, vocabulary))
    for index, statement in enumerate(program.statements):
        found += operands.empty_operands(statement)
        found += operands.wrong_words(statement, vocabulary)
        if isinstance(statement, Set) and statement.key.text == "toolchain":
            toolchain = statement.value.text
        if isinstance(statement, Set) and statement.key.text == "device":
            device = statement.value.text
        if isinstance(statement, Flash) and device not in vocabulary.flashable:
            found.append(_not_flashable(statement, device, vocabulary))
        found += apps.of_other_arch(statement, archs[index], vocabulary)
        found += stacks.unsupported(statement, toolchain, vocabulary)
        found += stacks.not_for_arch(statement, archs[index], toolchain, vocabulary)
        if isinstance(statement, Opt | Profile | Adap):
            found += stacks.profiles_at_once(statement.algorithm, toolchain, vocabulary)
        if program.complete:
            found += _references(statement, bindings, index)
            found += _of_other_arch(statement, bindings, index, archs)
            match statement:
                case Set(key=key, value=value) if key.text == "relinked":
                    relinked = value.text.strip("0") != ""
                case Eval(images=(first, *_)) if relinked:
                    found += _not_relinked(first, bindings, index)
                case Check():
                    found += checks.untestable(
                        statement, bindings, index, vocabulary.bound_to_build
                    )
                case Merge():
                    found += _unmergeable(statement, bindings, index, vocabulary)
                    found += stacks.unmerged(statement, bindings, index, toolchain, vocabulary)
    if program.complete:
        found += bindings.diagnostics
        found += stacks.unused_traces(program, vocabulary)
        found += instrumentation.unfit(
            program,
            vocabulary.recorded_rounds,
            vocabulary.recorders,
            vocabulary.interactive,
            vocabulary.whole,
            Settings().device,
        )
        found += loops.unfit(program, bindings, vocabulary)
        found += goals.unmeasured(program, bindings, vocabulary, archs)
        found += pairs.unmeasured(
            program, vocabulary.cases, vocabulary.core_quantities, vocabulary.default_metrics
        )
    return in_order(found)


def _not_flashable(statement: Flash, device: str, vocabulary: Vocabulary) -> Diagnostic:
    known = " or ".join(f"`set device {name}`" for name in sorted(vocabulary.flashable))
    return Diagnostic(
        statement.span,
        f"the device {quote(device)} cannot be flashed",
        f"write {known} before the statement" if known else None,
    )


def _references(statement: Statement, bindings: Bindings, index: int) -> Iterator[Diagnostic]:
    role, words = references(statement)
    match statement:
        case Set(key=key, value=value) if value.text != NO_PROFILE.get(key.text, value.text):
            role, words = "profile", (value,)
    for word in words:
        if word.text and isinstance(wrong := bindings.resolve(word, role, index), Diagnostic):
            yield wrong


def _archs_in_force(program: Program, vocabulary: Vocabulary) -> Iterator[str]:
    """The architecture at each statement."""
    arch = Settings().arch
    for statement in program.statements:
        if isinstance(statement, Set) and statement.key.text == "arch":
            # An unknown one is reported where the setting is checked.
            known = statement.value.text in vocabulary.architectures
            arch = statement.value.text if known else arch
        yield arch


def _of_other_arch(
    statement: Statement, bindings: Bindings, index: int, archs: Sequence[str]
) -> Iterator[Diagnostic]:
    """Images that a statement boots, and that the program makes for another architecture.

    Args:
        archs: the architecture at each statement.
    """
    role, words = references(statement)
    if role != "image":
        return
    for word in words:
        made = bindings.resolve(word, "image", index) if word.text else None
        if isinstance(made, Made | Plain) and archs[made.statement] != archs[index]:
            arch = archs[made.statement]
            yield Diagnostic(
                word.span,
                f"{quote(word.text)} is an image for {arch}, and this `{statement.verb}` is for "
                f"{archs[index]}",
                f"one `{statement.verb}` has images of one architecture: write another after "
                f"`set arch {arch}`",
            )


def _not_relinked(word: Word, bindings: Bindings, index: int) -> Iterator[Diagnostic]:
    if word.text and isinstance(bindings.resolve(word, "image", index), HostPath):
        yield Diagnostic(
            word.span,
            f"the baseline {quote(word.text)} is a file, which cannot be relinked",
            "name an image that the program builds, or `set relinked 0`",
        )


def _unmergeable(
    statement: Merge, bindings: Bindings, index: int, vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """Profiles of the program that have no sum."""
    first: tuple[Word, str] | None = None
    for word, made in made_profiles(statement, bindings, index):
        algorithm = algorithm_of(made, bindings)
        if algorithm is None:
            continue
        if "+" in algorithm:
            yield Diagnostic(
                word.span,
                f"profiles of {quote(algorithm)} cannot be merged",
                "merge those of its lowest algorithm",
            )
        elif algorithm in vocabulary.bound_to_build:
            yield Diagnostic(
                word.span,
                f"profiles of {quote(algorithm)} cannot be merged: each fits one build only",
                "merge the profiles of the algorithm below it",
            )
        elif first is None:
            first = word, algorithm
        elif algorithm != first[1]:
            yield Diagnostic(
                word.span,
                f"{quote(word.text)} is a profile of {quote(algorithm)}, "
                f"and {quote(first[0].text)} of {quote(first[1])}",
                "merge profiles of one algorithm",
            )
