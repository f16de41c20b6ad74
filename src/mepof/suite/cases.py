"""Suites: benchmarks as data files under ``suites/``, found by their stem."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError

_DIRECTORY = Path(__file__).with_name("suites")
# What `eval` without a metric runs: it asks nothing of a kernel that `slim` does not have.
_DEFAULT = "mepof"

CaseId = tuple[str, str]
"""Suite and case."""


@dataclass(frozen=True)
class Case:
    """One benchmark: it prints one result line and sets one pair of marks.

    Attributes:
        control: its work is user space's alone, so that it must not move.
    """

    suite: str
    name: str
    metric: str
    argv: tuple[str, ...]
    # What a case runs is told by how it is shown (cases_digest), and this is no part of it.
    control: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class Tool:
    """A program of a distribution's package, taken into a guest with its shared libraries."""

    path: str
    package: str


@dataclass(frozen=True)
class Programs:
    """What a suite's guest needs beyond the one that all kernels are booted with.

    Attributes:
        native: the directory under ``native/suites`` whose sources make its program.
        libraries: static libraries that it is linked with, such as ``sqlite3``.
        tools: programs of packages.
        scratch: MiB of the file system on a block device that its cases work on; 0 is none.
    """

    native: str | None = None
    libraries: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    scratch: int = 0


@dataclass(frozen=True)
class Suite:
    """A named set of cases.

    Attributes:
        selfcheck: the command by which a guest checks itself before the cases; every suite
            but one relies on that one's.
        config: the configuration whose kernels can run all of it.
        architectures: whose guests can; all where it is empty.
        memory: MiB that its guest needs.
        programs: what is added to the guest; None where the guest has all.
        baselines: operations per second of cases that count as 10 in the suite's index; empty
            where it has none.
        shorter: what is added to a case's command for half of its work, with ``{operations}``
            for the operations of that; empty where its work cannot be chosen.
    """

    name: str
    title: str
    selfcheck: tuple[str, ...]
    config: str
    architectures: tuple[str, ...]
    memory: int
    programs: Programs | None
    cases: tuple[Case, ...]
    baselines: tuple[tuple[str, float], ...] = ()
    shorter: tuple[str, ...] = ()


@cache
def load_suite(name: str) -> Suite:
    """The suite of that name.

    Raises:
        InputError: there is none.
    """
    path = _DIRECTORY / f"{name}.toml"
    if not path.is_file():
        raise InputError(f"unknown suite `{name}`", "known: " + ", ".join(suite_names()))
    with path.open("rb") as file:
        described = tomllib.load(file)
    cases = tuple(
        Case(
            name,
            entry["name"],
            entry["metric"],
            tuple(entry["argv"]),
            entry.get("control", False),
        )
        for entry in described["case"]
    )
    added = described.get("programs")
    programs = added and Programs(
        added.get("native"),
        tuple(added.get("libraries", ())),
        tuple(Tool(tool["path"], tool["package"]) for tool in added.get("tool", ())),
        added.get("scratch", 0),
    )
    return Suite(
        name=name,
        title=described["title"],
        selfcheck=tuple(described.get("selfcheck", ())),
        config=described.get("config", "slim"),
        architectures=tuple(described.get("architectures", ())),
        memory=described.get("memory", 512),
        programs=programs,
        cases=cases,
        baselines=tuple(
            (entry["name"], float(entry["baseline"]))
            for entry in described["case"]
            if "baseline" in entry
        ),
        shorter=tuple(described.get("shorter", ())),
    )


def suite_names() -> tuple[str, ...]:
    """Every suite, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))


def metric_names() -> tuple[str, ...]:
    """The metrics that G4 programs can ask for, in the suites' order."""
    cases = [case for name in suite_names() for case in load_suite(name).cases]
    return tuple(dict.fromkeys(case.metric for case in cases))


@cache
def is_control(suite: str, case: str) -> bool:
    """Whether a case, known here or not, is a control."""
    return suite in suite_names() and any(
        known.name == case and known.control for known in load_suite(suite).cases
    )


def cases_of(metrics: Sequence[str]) -> tuple[Case, ...]:
    """The cases of some metrics, or of the default suite where none is named."""
    if not metrics:
        return load_suite(_DEFAULT).cases
    return tuple(
        case for name in suite_names() for case in load_suite(name).cases if case.metric in metrics
    )


def suites_of(cases: Sequence[Case]) -> tuple[Suite, ...]:
    """The suites that some cases are of, in the cases' order."""
    return tuple(load_suite(name) for name in dict.fromkeys(case.suite for case in cases))


def memory_of(cases: Sequence[Case]) -> int:
    """MiB that a guest needs for the hungriest of the cases' suites."""
    return max(suite.memory for suite in suites_of(cases))


def guest_additions() -> dict[str, tuple[str, ...]]:
    """For every metric the suites whose programs its cases need beside the guest's own."""
    return {
        metric: tuple(
            suite.name for suite in suites_of(cases_of([metric])) if suite.programs is not None
        )
        for metric in metric_names()
    }


def cases_digest(cases: Sequence[Case]) -> str:
    """SHA-256 over what the cases run."""
    return sha256(repr(cases).encode()).hexdigest()
