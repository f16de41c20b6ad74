"""Suites: benchmarks as data files under ``suites/``, found by their stem."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError

_DIRECTORY = Path(__file__).with_name("suites")


@dataclass(frozen=True)
class Case:
    """One benchmark: it prints one result line and sets one pair of marks."""

    suite: str
    name: str
    metric: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Suite:
    """A named set of cases, and the command by which a guest checks itself."""

    name: str
    title: str
    selfcheck: tuple[str, ...]
    cases: tuple[Case, ...]


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
        Case(name, entry["name"], entry["metric"], tuple(entry["argv"]))
        for entry in described["case"]
    )
    return Suite(name, described["title"], tuple(described["selfcheck"]), cases)


def suite_names() -> tuple[str, ...]:
    """Every suite, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))


def metric_names() -> tuple[str, ...]:
    """The metrics that G4 programs can ask for, in the suites' order."""
    cases = [case for name in suite_names() for case in load_suite(name).cases]
    return tuple(dict.fromkeys(case.metric for case in cases))


def cases_of(metrics: Sequence[str]) -> tuple[Case, ...]:
    """The cases of some metrics, or of all where none is named."""
    return tuple(
        case
        for name in suite_names()
        for case in load_suite(name).cases
        if not metrics or case.metric in metrics
    )


def cases_digest(cases: Sequence[Case]) -> str:
    """SHA-256 over what the cases run."""
    return sha256(repr(cases).encode()).hexdigest()
