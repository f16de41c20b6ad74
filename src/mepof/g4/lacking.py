"""Cases that a program runs on kernels whose configuration does not have what they need, and
packages of kernels that have not what the machines need on which packages are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mepof.g4.apps import named
from mepof.g4.ast import Adap, Build, Eval, Opt, Profile, Program, Recomp, Set, Word
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import Bindings, Made, Plain, bind, is_path
from mepof.g4.settings import Settings, config
from mepof.g4.source import Span
from mepof.g4.words import Vocabulary
from mepof.kernel import kconfig


def lacking(program: Program, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Suites of which some cases cannot run, in a program without errors.

    Training ends with an error at such a case, and a report leaves it out. A configuration with a
    file of the user's may have anything.
    """
    bindings = bind(program)
    configs = tuple(_configs_in_force(program))
    without: tuple[str, ...] = ()
    for index, statement in enumerate(program.statements):
        match statement:
            case Set(key=key, value=value) if key.text == "without":
                without = tuple(value.text.split(","))
            case Opt() | Adap() | Profile():
                for span, suite in named(statement):
                    if not _is_left_out(suite, without, vocabulary.cases):
                        yield from _lacking(span, suite, configs[index], vocabulary)
            case Eval(images=images):
                built = [_built(image, bindings, index) for image in images]
                for span, metric in named(statement):
                    found = (
                        each
                        for at in built
                        if at is not None
                        for each in _lacking(span, metric, configs[at], vocabulary)
                    )
                    yield from list(found)[:1]


def unbootable(program: Program, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Settings by which kernels for QEMU's smallest machine are packaged, in a program without
    errors. A configuration with a file of the user's may have anything."""
    package: Word | None = None
    configs = tuple(_configs_in_force(program))
    for index, statement in enumerate(program.statements):
        match statement:
            case Set(key=key, value=value) if key.text == "package":
                package = value if value.text in vocabulary.beside else None
            case Opt() | Adap() | Recomp() | Build() if package is not None:
                chosen = configs[index]
                if any(map(is_path, chosen)) or not kconfig.is_minimal(chosen):
                    continue
                yield Diagnostic(
                    package.span,
                    f"the package has a kernel of `set config {'+'.join(chosen)}`, which boots no "
                    "ordinary machine: it has no PCI and no ACPI",
                    "write `set config server`, or name your machine's configuration as in "
                    "`set config /boot/config-6.12`, before the statement that builds it",
                )
                package = None  # once is enough


def _configs_in_force(program: Program) -> Iterator[tuple[str, ...]]:
    """The configuration at each statement."""
    chosen = Settings().config
    for statement in program.statements:
        if isinstance(statement, Set) and statement.key.text == "config":
            chosen = config(statement.value.text)
        yield chosen


def _built(image: Word, bindings: Bindings, index: int) -> int | None:
    """The statement that an image is of; None for a file."""
    made = bindings.resolve(image, "image", index)
    return made.statement if isinstance(made, Made | Plain) else None


def _is_left_out(suite: str, without: tuple[str, ...], cases: Mapping[str, str]) -> bool:
    """Whether training leaves out something of a suite."""
    return any(
        name in without
        for case, metric in cases.items()
        if case.startswith(f"{suite}/")
        for name in (suite, metric, case, case.partition("/")[2])
    )


def _lacking(
    span: Span, name: str, chosen: tuple[str, ...], vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """What a suite or metric needs and a configuration does not have."""
    needed = vocabulary.kernels.get(name)
    if needed is None or any(map(is_path, chosen)) or not kconfig.is_apart(needed, chosen):
        return
    under = kconfig.below(needed)
    sufficient = "+".join((needed, *(each for each in chosen if each not in under)))
    yield Diagnostic(
        span,
        f"not every case of {quote(name)} can run on a kernel of `set config {'+'.join(chosen)}`",
        f"write `set config {sufficient}` before the statement that builds it",
    )
