"""The words that a program can use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mepof.g4.ast import Word
from mepof.g4.diagnostics import Diagnostic, quote, suggestion
from mepof.g4.source import Span


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
    #: What training can leave out: suites, cases, groups of cases, apps, actions.
    untrained: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    #: What goals are about.
    quantities: tuple[str, ...] = ()
    #: Those of them that are sizes, which have neither a metric nor a group.
    sizes: frozenset[str] = frozenset()
    #: The architectures of apps and metrics that not all guests can run.
    bound_to_arch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The metrics that `eval` measures if it names none.
    default_metrics: tuple[str, ...] = ()
    #: The costs that goals are about, as reports call them.
    costs: tuple[str, ...] = ()
    #: Those of them that only a modelled core has.
    core_costs: frozenset[str] = frozenset()
    #: Of those that cases must print, the groups that have a case which does.
    printed_costs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Of those that not every architecture has, the architectures that do.
    arch_costs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Those whose value must not change, so that controls count.
    control_costs: frozenset[str] = frozenset()
    #: The groups of which every case is a control.
    control_groups: frozenset[str] = frozenset()
    #: The group of each case, by its suite and name.
    cases: Mapping[str, str] = field(default_factory=dict)
    #: For each suite and metric that needs more than the default configuration, the one whose
    #: kernels can run all of its cases.
    kernels: Mapping[str, str] = field(default_factory=dict)
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
    #: The algorithms whose profiles can begin with what is left of an older one.
    renewing: frozenset[str] = frozenset()
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
    #: The toolchains that build kernels for each architecture.
    builders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Formats of packages, and whether each takes a file after a colon.
    packages: Mapping[str, bool] = field(default_factory=dict)
    #: Those that are installed beside other kernels, on machines that are not emulated.
    beside: frozenset[str] = frozenset()
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


def lookup(
    noun: str, word: Word, text: str, known: Iterable[str], span: Span | None = None
) -> Iterator[Diagnostic]:
    """Look up ``text``, the start of a word or the part of it at ``span``."""
    if word.text and text not in known:
        yield Diagnostic(
            span or word.part(0, len(text)),
            f"unknown {noun} {quote(text)}",
            suggestion(text, known),
        )


def duplicates(words: tuple[Word, ...]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for word in words:
        if word.text in seen:
            yield Diagnostic(word.span, f"{quote(word.text)} is given twice", "write it once")
        seen.add(word.text)
