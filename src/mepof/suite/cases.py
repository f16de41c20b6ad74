"""Suites: benchmarks as data files under ``suites/``, found by their stem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, ValidationInfo, field_validator

from mepof.described import Described, Named, Word, check_distinct
from mepof.registry import DescribedRegistry
from mepof.suite.comparison import ComparisonEntry

# Run by `eval` without a metric: it needs nothing of a kernel that `slim` does not have.
_DEFAULT = "mepof"

#: MiB of memory of a guest that nothing asks more for.
MIN_MEMORY = 512

#: The configuration of suites that need no other.
DEFAULT_CONFIG = "slim"

Printed = Literal["latency", "time_per_byte"]
"""A cost that is computed from figures that only some cases print."""

CaseId = tuple[str, str]
"""Suite and case."""


class CaseEntry(Described):
    """A case in a suite's file.

    Attributes:
        metric: G4's word for the group of cases that it is in.
        control: it works in user space alone, so that its figures must not move.
        baseline: operations per second that count as 10 in the suite's index; None if it is not
            part of one.
        prints: the costs whose figures it prints, by their names in reports.
    """

    name: Word
    metric: Word
    argv: tuple[str, ...] = Field(min_length=1)
    # Left out of repr(), which cases_digest() hashes: these do not change what runs.
    control: bool = Field(default=False, repr=False)
    baseline: float | None = Field(default=None, gt=0, repr=False)
    prints: tuple[Printed, ...] = Field(default=(), repr=False)


class Case(CaseEntry):
    """One benchmark: it prints one result line and sets one pair of marks."""

    suite: str


class Tool(Described):
    """A program of a distribution's package."""

    path: str
    package: str


class Programs(Described):
    """Additions to the guest of every kernel that a suite or an installed app needs.

    Attributes:
        native: the directory under ``native/suites`` with the sources of its program.
        libraries: that it is linked with, such as ``sqlite3``; statically, unless its
            ``shared.mk`` says otherwise.
        tools: programs that are taken into the guest with their shared libraries: of this machine,
            or, for another architecture, of Debian's packages for it.
        shell: its cases run scripts, for which guests without BusyBox get Debian's.
        builders: programs of this machine that the sources are built with, beside a C compiler.
        scratch: MiB of the file system on a block device that its cases work on; 0 for none.
    """

    native: str | None = None
    libraries: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = Field(default=(), alias="tool")
    builders: tuple[Tool, ...] = Field(default=(), alias="builder")
    shell: bool = False
    scratch: int = Field(default=0, ge=0)


class Suite(Named):
    """A named set of cases.

    Attributes:
        selfcheck: the command by which a guest checks itself before the cases; only the default
            suite has one.
        config: the configuration whose kernels can run all of it.
        architectures: those whose guests can run it; empty for all.
        memory: MiB that its guest needs.
        programs: additions to the guest; None if it needs none.
        shorter: words added to a case's command for half of its work, with ``{operations}`` for
            half of its operations; empty if the work is fixed.
        comparisons: of its cases with each other, which reports have if both were measured.
    """

    title: str
    selfcheck: tuple[str, ...] = ()
    config: str = DEFAULT_CONFIG
    architectures: tuple[str, ...] = ()
    memory: int = Field(default=MIN_MEMORY, gt=0)
    programs: Programs | None = None
    entries: tuple[CaseEntry, ...] = Field(alias="case")
    shorter: tuple[str, ...] = ()
    comparisons: tuple[ComparisonEntry, ...] = Field(default=(), alias="comparison")

    @field_validator("entries")
    @classmethod
    def _names_are_distinct(cls, entries: tuple[CaseEntry, ...]) -> tuple[CaseEntry, ...]:
        check_distinct(entry.name for entry in entries)
        return entries

    @field_validator("comparisons")
    @classmethod
    def _compares_its_own_cases(
        cls, comparisons: tuple[ComparisonEntry, ...], info: ValidationInfo
    ) -> tuple[ComparisonEntry, ...]:
        known = {entry.name for entry in info.data.get("entries", ())}
        for comparison in comparisons:
            check_distinct(comparison.cases)
            for case in comparison.cases if known else ():
                if case not in known:
                    raise ValueError(f"`{comparison.title}` compares `{case}`, which is not a case")
        return comparisons

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The cases, in the order of the file."""
        return tuple(Case(suite=self.name, **dict(entry)) for entry in self.entries)


SUITES = DescribedRegistry(Path(__file__).with_name("suites"), Suite, "suite")


@cache
def load_suite(name: str) -> Suite:
    """The suite of that name.

    Raises:
        InputError: there is none, or its file is wrong.
    """
    return SUITES.get(name)


def selfcheck() -> tuple[str, ...]:
    """The command by which every guest checks itself before it runs cases."""
    return load_suite(_DEFAULT).selfcheck


def suite_names() -> tuple[str, ...]:
    """Every suite, sorted."""
    return SUITES.names()


def metric_names() -> tuple[str, ...]:
    """The metrics that G4 programs can ask for, in the suites' order."""
    cases = [case for name in suite_names() for case in load_suite(name).cases]
    return tuple(dict.fromkeys(case.metric for case in cases))


def groups_by_case() -> dict[str, str]:
    """The metric of every case that suites have, by ``suite/case``."""
    return {
        f"{name}/{case.name}": case.metric
        for name in suite_names()
        for case in load_suite(name).cases
    }


def kernels() -> dict[str, str]:
    """The configuration whose kernels can run all of a suite, by suite and metric."""
    suites = [load_suite(name) for name in suite_names()]
    return {
        name: suite.config
        for suite in suites
        for name in (suite.name, *(case.metric for case in suite.cases))
    }


def printing_groups() -> dict[str, frozenset[str]]:
    """The metrics of G4 that have a case which prints the figures of a cost, by the cost."""
    cases = [case for name in suite_names() for case in load_suite(name).cases]
    return {
        cost: frozenset(case.metric for case in cases if cost in case.prints)
        for cost in get_args(Printed)
    }


def control_groups() -> frozenset[str]:
    """The metrics of G4 of which every case is a control."""
    cases = [case for name in suite_names() for case in load_suite(name).cases]
    return frozenset(case.metric for case in cases) - {c.metric for c in cases if not c.control}


@cache
def is_control(suite: str, case: str) -> bool:
    """Whether a case is a control; one that no suite has is not."""
    return suite in suite_names() and any(
        known.name == case and known.control for known in load_suite(suite).cases
    )


def cases_of(metrics: Sequence[str]) -> tuple[Case, ...]:
    """The cases of some metrics, or those of the default suite if there is no metric."""
    if not metrics:
        return load_suite(_DEFAULT).cases
    return tuple(
        case for name in suite_names() for case in load_suite(name).cases if case.metric in metrics
    )


def suites_of(cases: Sequence[Case]) -> tuple[Suite, ...]:
    """The suites of some cases, in the cases' order."""
    return tuple(load_suite(name) for name in dict.fromkeys(case.suite for case in cases))


def memory_of(cases: Sequence[Case]) -> int:
    """MiB of memory that a guest needs to run the cases of all these suites."""
    return max(suite.memory for suite in suites_of(cases))


def guest_additions() -> dict[str, tuple[str, ...]]:
    """The suites that add programs to the guest for a metric's cases, by metric."""
    return {
        metric: tuple(
            suite.name for suite in suites_of(cases_of([metric])) if suite.programs is not None
        )
        for metric in metric_names()
    }


def bound_to_arch() -> dict[str, tuple[str, ...]]:
    """The architectures of suites that not all guests can run, by suite and by metric."""
    bound = [suite for suite in map(load_suite, suite_names()) if suite.architectures]
    return {
        name: suite.architectures
        for suite in bound
        for name in (suite.name, *(case.metric for case in suite.cases))
    }


def cases_digest(cases: Sequence[Case]) -> str:
    """SHA-256 over the names and commands of cases."""
    return sha256(repr(cases).encode()).hexdigest()
