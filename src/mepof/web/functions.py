"""The functions of a profile artifact, the hottest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mepof import _engine
from mepof.errors import InputError
from mepof.profile.counts import read_counts

# A kernel has about 100,000; those that ran are a few thousand.
_MAX_FUNCTIONS = 200_000
_COUNTS = (".profdata", ".csprofdata")


@dataclass(frozen=True)
class Function:
    """A function and its samples or counts.

    Attributes:
        total: the sum over its lines or blocks, with what is inlined into it.
        largest: for counts, of its blocks; for samples, how often it was called.
    """

    name: str
    total: int
    largest: int


@dataclass(frozen=True)
class Functions:
    """A profile.

    Attributes:
        facts: by name.
        total: over all functions.
        largest: what the column of that name holds.
        what: ``samples`` or ``counts``.
    """

    file: str
    facts: Mapping[str, str]
    total: int
    what: str
    largest: str
    functions: tuple[Function, ...]


def profile_in(artifact: Path) -> Path | None:
    """The file of an artifact that has a profile of functions; None if it is another artifact."""
    for suffix in (".afdo", *_COUNTS):
        for path in sorted(artifact.glob(f"*{suffix}")):
            if path.is_file() and not path.is_symlink():
                return path
    return None


@lru_cache(maxsize=16)
def functions_of(profile: Path) -> Functions:
    """What is in a profile; artifacts do not change, so it is read once.

    Raises:
        InputError: it cannot be read.
        EnvironmentLack: llvm-profdata is missing.
    """
    if profile.suffix in _COUNTS:
        counted = read_counts(profile)
        return Functions(
            profile.name,
            {
                "functions": f"{len(counted):,}",
                "of them ran": f"{sum(1 for f in counted if f.total):,}",
                "counters": f"{sum(len(f.blocks) for f in counted):,}",
            },
            sum(f.total for f in counted),
            "counts",
            "Largest block",
            tuple(Function(f.name, f.total, max(f.blocks, default=0)) for f in counted),
        )
    shown = json.loads(_engine.show(profile, _MAX_FUNCTIONS, 0))
    has = shown["statistics"]
    try:
        return Functions(
            profile.name,
            {
                "format": str(shown["format"]),
                "functions": f"{has['functions']:,}",
                "of them with samples": f"{has['functions_with_samples']:,}",
                "inlined copies": f"{has['inlined_copies']:,}",
                "hot functions": f"{has['hot_functions']:,}",
            },
            has["total"],
            "samples",
            "Calls",
            tuple(Function(f["name"], f["total"], f["head"]) for f in shown["functions"]),
        )
    except KeyError as error:
        raise InputError(f"{profile} has no {error}") from error
