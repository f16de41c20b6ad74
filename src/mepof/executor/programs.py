"""Turns the text of a program into a plan that can run, for every executor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS, DEFAULT_ALGORITHM
from mepof.app import apps
from mepof.app.android import load_described
from mepof.app.apps import App
from mepof.device.flashing import check_permission
from mepof.device.protocol import DEVICES, Listed, LocationSource
from mepof.errors import InputError, MepofError
from mepof.g4 import Source, check, parse, render
from mepof.g4.apps import own_apps, spelt_alike
from mepof.g4.ast import Flash, Program, Set
from mepof.g4.compiler import compile_program
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.lacking import lacking, unbootable
from mepof.g4.paths import host_paths
from mepof.g4.source import Span
from mepof.g4.stacks import recorded_rounds
from mepof.g4.unused import without_effect
from mepof.g4.variants import Variants
from mepof.g4.vocabulary import vocabulary, with_own
from mepof.g4.words import Vocabulary
from mepof.kernel.options import LEVEL, option_groups
from mepof.package.protocol import FORMATS
from mepof.plan.model import HostInput, Plan
from mepof.plan.preflight import preflight
from mepof.scenario.protocol import SCENARIOS
from mepof.source.path import as_git
from mepof.steps import BODIES
from mepof.suite.cases import guest_additions
from mepof.toolchain.protocol import TOOLCHAINS

# How sources are named in their packages, and elsewhere.
_DEBIAN = re.compile(r"(?:\w+:)?(linux-source-\d+\.\d+)", re.I)
_RELEASE = re.compile(r"v?(\d+\.\d+)")
_ADD_A_STATEMENT = "add a statement, such as `opt SOURCE pgo rand kbench.`"


class WrongProgram(InputError):
    """A program with errors; the message is the rendered diagnostics."""


def compiled(source: Source, perf_data: tuple[str, ...] = ()) -> Plan:
    """Check and compile a program. Of the files that it names, none is read but descriptions of
    apps, and these only where words would be unknown otherwise.

    Args:
        perf_data: branch traces, as in :func:`mepof.g4.compiler.compile_program`.

    Raises:
        WrongProgram: it has errors.
        EnvironmentLack: it names a variant of another distribution that cannot be used.
    """
    return _compiled(source, perf_data)[1]


def _compiled(source: Source, perf_data: tuple[str, ...]) -> tuple[Program, Plan, Vocabulary]:
    parsed = parse(source)
    program = spelt_alike(parsed.program)
    words = vocabulary()
    found = [*parsed.diagnostics, *check(program, words)]
    if found:
        words, unread = _with_own(program, words)
        found = [*parsed.diagnostics, *check(program, words), *unread]
    if found:
        _refuse_unusable(found, source)
        raise WrongProgram(render(found, source))
    rounds = max(recorded_rounds(program, words).values(), default=0)
    if len(perf_data) > rounds:
        raise InputError(
            f"no round of the program uses {perf_data[rounds]}",
            "give one branch trace for each round that records branches",
        )
    return program, compile_program(program, source.text, _variants(words), perf_data), words


def _variants(words: Vocabulary) -> Variants:
    """What the compiler knows of the installed variants."""
    return Variants(
        ALGORITHMS.all(),
        DEFAULT_ALGORITHM,
        DEVICES.all(),
        frozenset(option_groups()[LEVEL]),
        guest_additions(),
        apps.guest_additions(),
        {name: scenario.argument for name, scenario in SCENARIOS.all().items()},
        apps.DEFAULT,
        words.interactive,
        words.recorders,
        words.whole,
        cases=tuple(words.cases),
        beside=frozenset(name for name, made in FORMATS.all().items() if made.beside),
        of_source=frozenset(name for name, made in FORMATS.all().items() if made.of_source),
        locators=frozenset(
            n for n, dev in DEVICES.all().items() if isinstance(dev, LocationSource)
        ),
    )


def _with_own(program: Program, words: Vocabulary) -> tuple[Vocabulary, list[Diagnostic]]:
    """The words of a program with those of the user's apps in it, and which cannot be read."""
    known: dict[str, App] = {}
    unread: list[Diagnostic] = []
    for span, path in own_apps(program):
        try:
            known[path] = load_described(Path(path))
        except InputError as error:
            unread.append(Diagnostic(span, error.message, error.remedy))
    return with_own(words, known), unread


def _refuse_unusable(found: Sequence[Diagnostic], source: Source) -> None:
    """Say why a word is unknown, if another distribution adds it.

    Raises:
        EnvironmentLack: such a variant cannot be used.
    """
    named = {source.text[each.span.start : each.span.end] for each in found}
    for registry in (ALGORITHMS, DEVICES, FORMATS, SCENARIOS, TOOLCHAINS):
        for name, lack in registry.unusable().items():
            if name in named:
                raise lack


def plan_of(
    source: Source,
    perf_data: tuple[str, ...] = (),
    warn: Callable[[str], None] = lambda text: None,
    *,
    runs: bool = True,
) -> Plan:
    """Check and compile a program, and check the files that it names, so that nothing is built
    from wrong input.

    Args:
        warn: is called with rendered warnings, if there are any.
        runs: the program is run now. If not, warnings say what a run here would refuse.

    Raises:
        WrongProgram: it has errors.
        InputError: it makes nothing; a file is missing, or is not what its statement needs.
    """
    program, plan, words = _compiled(source, perf_data)
    if not plan.steps:
        if runs:
            raise InputError(f"{source.name} makes nothing", _ADD_A_STATEMENT)
        warn(f"{source.name}: warning: it makes nothing\n  help: {_ADD_A_STATEMENT}")
    if found := [*_missing(program, plan, source)]:
        raise WrongProgram(render(found, source))
    preflight(plan, BODIES.all())
    again = partial(
        compile_program, text=source.text, variants=_variants(words), perf_data=perf_data
    )
    doubts = [
        *without_effect(program, plan, again),
        *lacking(program, words),
        *unbootable(program, words),
    ]
    if not runs:
        doubts += _refused_here(program)
    if doubts:
        warn(render(doubts, source, kind="warning"))
    return plan


def _refused_here(program: Program) -> Iterator[Diagnostic]:
    """What a run on this machine would refuse, though the program is correct."""
    said = set[str]()
    for statement in program.statements:
        try:
            match statement:
                case Set(key=key, value=value) if key.text == "device":
                    if isinstance(device := DEVICES.get(value.text), Listed):
                        device.check_list()
                case Flash():
                    check_permission()
        except MepofError as error:
            if error.message not in said:
                yield Diagnostic(statement.span, error.message, error.remedy)
            said.add(error.message)


def _missing(program: Program, plan: Plan, source: Source) -> Iterator[Diagnostic]:
    """The paths of a program that do not exist."""
    beside = Path(source.name).parent
    given = (each for step in plan.steps for each in step.inputs.values())
    needed = {each.path for each in given if isinstance(each, HostInput)}
    toolchains = {str(step.params.get("toolchain", "")) for step in plan.steps}
    compilers = {each.partition(":")[2] for each in toolchains if ":" in each}
    needed |= compilers
    arguments = {name: scenario.argument for name, scenario in SCENARIOS.all().items()}
    for span, path in host_paths(program, arguments):
        if path not in needed:
            continue  # of a setting that no statement uses
        try:
            if not Path(path).exists():
                if path in compilers:
                    yield _missing_compilers(span, source, Path(path), beside)
                    continue
                yield Diagnostic(span, f"{quote(path)} does not exist", _remedy(path, beside))
        except OSError as error:  # a name that is too long, a directory that is closed to us
            yield Diagnostic(span, f"{quote(path)} cannot be read: {error.strerror}")


def _missing_compilers(span: Span, source: Source, path: Path, beside: Path) -> Diagnostic:
    """A toolchain's directory, by the path that the program has, which is made absolute."""
    written = source.text[span.start : span.end].strip('"')
    remedy = _remedy(written, beside)
    # As in CROSS_COMPILE, what the names of programs begin with.
    with suppress(OSError):
        if any(each.name.startswith(path.name) for each in path.parent.iterdir()):
            remedy = f"name the directory of the compilers: {path.parent}"
    return Diagnostic(span, f"{quote(written)} does not exist", remedy)


def _remedy(path: str, beside: Path) -> str | None:
    """How to name a file that exists."""
    if path.startswith("~"):
        return "write the whole path instead of `~`"
    if debian := _DEBIAN.fullmatch(path):
        return f"Debian's source is `debian:{debian[1].lower()}`"
    if release := _RELEASE.fullmatch(path):
        return f"a release is `debian:linux-source-{release[1]}`, or `git+URL#tag=v{release[1]}`"
    if (git := as_git(path)) is not None or Path(path).is_absolute():
        return git
    remedy = f"paths are relative to {Path.cwd()}"
    if "+" in path:
        remedy += ", and one after a `+` begins with `./`, `../` or `/`"
    found = beside / path
    return f"{remedy}; the program is beside {found}" if found.exists() else remedy
