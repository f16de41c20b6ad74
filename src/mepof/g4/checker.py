"""Checks that a parsed program makes sense: its words are known, its values and names valid."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mepof.errors import InputError
from mepof.g4 import checks, goals, instrumentation, loops, pairs
from mepof.g4.ast import (
    OPERANDS,
    Adap,
    Build,
    Check,
    Compare,
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
from mepof.g4.diagnostics import Diagnostic, in_order, quote, suggestion
from mepof.g4.names import (
    Bindings,
    HostPath,
    Role,
    algorithm_of,
    bind,
    is_path,
    made_profiles,
)
from mepof.g4.settings import NO_PACKAGE, NO_PROFILE, SETTINGS, Settings, weight
from mepof.g4.source import Span
from mepof.source.protocol import parse


@dataclass(frozen=True)
class Vocabulary:
    """The words that a program can use, from the registries of the installed variants."""

    algorithms: tuple[str, ...]
    clicks: tuple[str, ...]
    apps: tuple[str, ...]
    options: tuple[str, ...]
    #: Groups of cases.
    metrics: tuple[str, ...]
    architectures: tuple[str, ...]
    toolchains: tuple[str, ...]
    devices: tuple[str, ...]
    configs: tuple[str, ...]
    #: What training can leave out: suites, cases, groups of cases.
    untrained: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    #: What goals are about.
    quantities: tuple[str, ...] = ()
    #: Those of them that are sizes, which have neither a metric nor a group.
    sizes: frozenset[str] = frozenset()
    #: The metrics that `eval` measures if it names none.
    default_metrics: tuple[str, ...] = ()
    #: The costs that goals are about, as reports call them.
    costs: tuple[str, ...] = ()
    #: Those of them that only a modelled core has.
    core_costs: frozenset[str] = frozenset()
    #: The group of each case, by its suite and name.
    cases: Mapping[str, str] = field(default_factory=dict)
    #: What two cases can be compared in.
    quantities_of_cases: tuple[str, ...] = ()
    #: What of it only a modelled core has.
    core_quantities: frozenset[str] = frozenset()
    #: Sets of tests that images must pass.
    gates: tuple[str, ...] = ()
    #: Parts of the set `kselftest`.
    collections: tuple[str, ...] = ()
    #: Groups of mutually exclusive options, by the name of the group.
    option_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The number of rounds in which each algorithm needs a branch trace.
    recorded_rounds: Mapping[str, int] = field(default_factory=dict)
    #: The algorithms that profile a kernel which was built with their own profile.
    repeating: frozenset[str] = frozenset()
    #: The algorithms whose profiles fit only the exact build that was profiled.
    bound_to_build: frozenset[str] = frozenset()
    #: What follows an app and a colon in each scenario: nothing, a weight or a file.
    arguments: Mapping[str, str] = field(default_factory=dict)
    #: The toolchain of a program that does not set one.
    default_toolchain: str = ""
    #: The capabilities that an algorithm or option requires of a toolchain, if any.
    requirements: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: The capabilities of each toolchain.
    capabilities: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Those of which one build takes a single profile, by toolchain.
    exclusive: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Formats of packages, and whether each takes a file after a colon.
    packages: Mapping[str, bool] = field(default_factory=dict)
    #: Devices that can be flashed.
    flashable: frozenset[str] = frozenset()
    #: Devices that record branches.
    recorders: frozenset[str] = frozenset()
    #: Scenarios in which the user works at the console.
    interactive: frozenset[str] = frozenset()
    #: Options for which functions that never ran are part of a profile.
    whole: frozenset[str] = frozenset()
    #: Parts of the kernel.
    subsystems: tuple[str, ...] = ()


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
    for index, statement in enumerate(program.statements):
        found += _empty_operands(statement)
        found += _words(statement, vocabulary)
        if isinstance(statement, Set) and statement.key.text == "toolchain":
            toolchain = statement.value.text
        if isinstance(statement, Set) and statement.key.text == "device":
            device = statement.value.text
        if isinstance(statement, Flash) and device not in vocabulary.flashable:
            found.append(_not_flashable(statement, device, vocabulary))
        found += _requirements(statement, toolchain, vocabulary)
        if isinstance(statement, Opt | Profile | Adap):
            found += _profiles_at_once(statement.algorithm, toolchain, vocabulary)
        if program.complete:
            found += _references(statement, bindings, index)
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
    if program.complete:
        found += bindings.diagnostics
        found += _unused_traces(program, vocabulary)
        found += instrumentation.unfit(
            program,
            vocabulary.recorded_rounds,
            vocabulary.recorders,
            vocabulary.interactive,
            vocabulary.whole,
            Settings().device,
        )
        found += loops.unfit(program, bindings, vocabulary.repeating, vocabulary.bound_to_build)
        found += goals.unmeasured(
            program,
            bindings,
            vocabulary.core_costs,
            vocabulary.metrics,
            vocabulary.default_metrics,
        )
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


def _empty_operands(statement: Statement) -> Iterator[Diagnostic]:
    for operand in OPERANDS[statement.verb]:
        value: Word | tuple[Word, ...] = getattr(statement, operand.name)
        for word in (value,) if isinstance(value, Word) else value:
            if not word.text:
                yield Diagnostic(word.span, f"the {operand.noun} is empty")


def _words(statement: Statement, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    match statement:
        case Opt(path=kernel) | Profile(path=kernel) | Recomp(path=kernel) | Build(path=kernel):
            yield from _source(kernel)
        case Adap(url=kernel):
            yield from _source(kernel)
    match statement:
        case Opt() | Profile() | Adap():
            yield from _algorithm(statement.algorithm, vocabulary)
            yield from _lookup("click", statement.click, statement.click.text, vocabulary.clicks)
            for app in statement.apps:
                yield from _app(app, statement.click.text, vocabulary)
        case Merge():
            yield from _merge(statement)
        case Eval():
            if not statement.images:
                yield Diagnostic(statement.span, "`eval` needs at least one image")
            for metric in statement.metrics:
                yield from _metric(metric, vocabulary)
            yield from _duplicates(statement.metrics)
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
            yield from _duplicates(statement.metrics)
    if isinstance(statement, Opt | Adap | Recomp | Build):
        for option in statement.options:
            yield from _lookup("option", option, option.text, vocabulary.options)
        yield from _duplicates(statement.options)
        yield from _conflicts(statement.options, vocabulary)


def _source(word: Word) -> Iterator[Diagnostic]:
    """Check the form of a kernel's address; nothing is read."""
    if not word.text:
        return
    try:
        parse(word.text)
    except InputError as error:
        yield Diagnostic(word.span, error.message, error.remedy)


def _app(word: Word, click: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Check an app and the argument after its colon."""
    name, colon, text = word.text.partition(":")
    yield from _app_name(word, name, vocabulary)
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


def _metric(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """A metric, or the path of a file that describes an app."""
    name, colon, text = word.text.partition(":")
    if is_path(name) and colon:
        yield Diagnostic(
            word.part(len(name) + 1, len(word.text)) if text else word.span,
            "`eval` measures each action of an app once",
            f"write {quote(name)} without a colon",
        )
    elif is_path(name) or name.endswith(".toml"):
        yield from _app_name(word, name, vocabulary)
    else:
        yield from _lookup("metric", word, word.text, vocabulary.metrics)


def _app_name(word: Word, name: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """An installed app, or the path of a file that describes one."""
    if is_path(name):
        if not name.endswith(".toml"):
            yield _not_described(name, word.part(0, len(name)))
    elif name.endswith(".toml"):
        yield Diagnostic(
            word.part(0, len(name)), f"unknown app {quote(name)}", f"write {quote('./' + name)}"
        )
    else:
        yield from _lookup("app", word, name, vocabulary.apps)


def _not_described(path: str, span: Span) -> Diagnostic:
    return Diagnostic(
        span,
        f"the path {quote(path)} does not end in `.toml`",
        "name the file that describes the app",
    )


def _requirements(
    statement: Statement, toolchain: str, vocabulary: Vocabulary
) -> Iterator[Diagnostic]:
    """Algorithms and options that the toolchain does not support."""
    has = vocabulary.capabilities.get(toolchain)
    if has is None:
        return
    words: list[tuple[Span, str]] = []
    if isinstance(statement, Opt | Profile | Adap):
        words += _parts(statement.algorithm)
    if isinstance(statement, Opt | Adap | Recomp | Build):
        words += [(word.span, word.text) for word in statement.options]
    for span, text in words:
        required = vocabulary.requirements.get(text, frozenset())
        if missing := sorted(required - has):
            able = [name for name, all_ in vocabulary.capabilities.items() if required <= all_]
            yield Diagnostic(
                span,
                f"`{text}` needs a toolchain with {', '.join(missing)}, "
                f"which `{toolchain}` does not have",
                f"write `set toolchain {able[0]}` before it" if able else None,
            )


def _profiles_at_once(stack: Word, toolchain: str, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Algorithms of a stack whose profiles the toolchain cannot use in one build."""
    exclusive = vocabulary.exclusive.get(toolchain, frozenset())
    first: str | None = None
    for span, part in _parts(stack):
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


def _parts(stack: Word) -> Iterator[tuple[Span, str]]:
    """The algorithms of a stack, with their spans."""
    at = 0
    for part in stack.text.split("+"):
        yield stack.part(at, at + len(part)), part
        at += len(part) + 1


def _unused_traces(program: Program, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """Branch traces that no round of the statements up to the next setting uses."""
    given: Word | None = None
    rounds: list[int] = []

    def unused() -> Iterator[Diagnostic]:
        traces = given.text.split(",") if given is not None else []
        if given is not None and all(traces) and rounds and len(traces) > max(rounds):
            yield Diagnostic(
                given.span,
                f"no round uses {quote(traces[max(rounds)])}",
                "give one branch trace for each round that records branches",
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


def _references(statement: Statement, bindings: Bindings, index: int) -> Iterator[Diagnostic]:
    role: Role
    match statement:
        case Merge():
            role, words = "profile", statement.profiles
        case Recomp():
            role, words = "profile", (statement.profile,)
        case Eval() | Check():
            role, words = "image", statement.images
        case Flash():
            role, words = "image", (statement.image,)
        case Set(key=key, value=value) if value.text != NO_PROFILE.get(key.text, value.text):
            role, words = "profile", (value,)
        case _:
            return
    for word in words:
        if word.text and isinstance(wrong := bindings.resolve(word, role, index), Diagnostic):
            yield wrong


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


def _lookup(
    noun: str, word: Word, text: str, known: Iterable[str], span: Span | None = None
) -> Iterator[Diagnostic]:
    """Look up ``text``, the start of a word or the part of it at ``span``."""
    if word.text and text not in known:
        yield Diagnostic(
            span or word.part(0, len(text)),
            f"unknown {noun} {quote(text)}",
            suggestion(text, known),
        )


def _algorithm(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    """An algorithm, or a stack of them joined by ``+``."""
    if word.text and "" in word.text.split("+"):
        yield Diagnostic(
            word.span,
            f"{quote(word.text)} is missing an algorithm next to `+`",
            "write a stack as in `autofdo+propeller`",
        )
        return
    for span, part in _parts(word):
        yield from _lookup("algorithm", word, part, vocabulary.algorithms, span)
    yield from _stack(tuple(_parts(word)), vocabulary)


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


def _duplicates(words: tuple[Word, ...]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for word in words:
        if word.text in seen:
            yield Diagnostic(word.span, f"{quote(word.text)} is given twice", "write it once")
        seen.add(word.text)


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
        yield from _lookup("gate", word, name, vocabulary.gates)
        if not colon or name not in vocabulary.gates:
            continue
        span = word.part(len(name) + 1, len(word.text)) if collection else word.span
        if name != checks.KSELFTEST:
            yield Diagnostic(span, f"`{name}` has no parts", f"write {quote(name)} without a colon")
        elif not collection:
            yield Diagnostic(span, "the name of a collection is missing after the colon")
        else:
            yield from _lookup("collection", word, collection, vocabulary.collections, span)
    yield from _duplicates(statement.gates)


def _goal(statement: Goal, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    word, bound = statement.quantity, statement.bound
    quantity, group = goals.quantity_of(statement)
    yield from _lookup("goal", word, quantity, vocabulary.quantities)
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
                yield _not_described(group, span)
        else:
            yield from _lookup("metric", word, group, vocabulary.metrics, span)
    if quantity in vocabulary.sizes and statement.metrics:
        first, last = statement.metrics[0], statement.metrics[-1]
        yield Diagnostic(first.span.to(last.span), f"`{quantity}` is a size, which takes no metric")
        return
    for metric in statement.metrics:
        yield from _lookup("metric", metric, metric.text, vocabulary.costs)
    yield from _duplicates(statement.metrics)


def _package(word: Word, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    name, colon, _ = word.text.partition(":")
    yield from _lookup("format of packages", word, name, (NO_PACKAGE, *vocabulary.packages))
    if colon and not vocabulary.packages.get(name, True):
        span = word.part(len(name) + 1, len(word.text))
        yield Diagnostic(span, f"`{name}` takes no file", f"write {quote(name)} without a colon")


def _setting(statement: Set, vocabulary: Vocabulary) -> Iterator[Diagnostic]:
    key, word = statement.key, statement.value
    setting = SETTINGS.get(key.text)
    if setting is None:
        yield from _lookup("setting", key, key.text, SETTINGS)
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
    at = 0
    for part in map(str, value) if isinstance(value, tuple) else (str(value),):
        if not (key.text == "config" and "/" in part):
            span = word.part(at, at + len(part))
            yield from _lookup(setting.noun or key.text, word, part, known, span)
        at += len(part) + 1


def _toolchain(word: Word, known: Collection[str]) -> Iterator[Diagnostic]:
    """A toolchain. The name that is most like that of an old version is one that does not exist
    yet, so the range is named instead."""
    family, dash, version = word.text.rpartition("-")
    if word.text in known or not (dash and version.isdecimal() and family in known):
        yield from _lookup("toolchain", word, word.text, known)
        return
    versions = [name.removeprefix(f"{family}-") for name in known]
    numbers = [int(number) for number in versions if number.isdecimal()]
    yield Diagnostic(
        word.span,
        f"unknown toolchain {quote(word.text)}",
        f"known: {family}-{min(numbers)} to {family}-{max(numbers)}",
    )
