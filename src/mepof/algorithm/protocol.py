"""What an algorithm is: the answers to five questions, and nothing else knows which one runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

from mepof.device.agent import Request
from mepof.errors import InputError
from mepof.process import Completed
from mepof.registry import Registry
from mepof.toolchain.clang import Clang


@dataclass(frozen=True)
class BuildAddition:
    """What an algorithm adds to a kernel build.

    Attributes:
        overlays: names of overlays.
        config_lines: Kconfig lines.
        cflags: compiler flags for the files that can take them.
    """

    overlays: tuple[str, ...] = ()
    config_lines: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quality:
    """How good a profile is.

    Attributes:
        functions: functions that the profile knows.
        executed: those of them that ran.
        coverage_percent: executed of known, in percent.
        verdict: ``good``, or ``poor`` where a build with it is not worth its time.
        reasons: why it is poor.
    """

    functions: int
    executed: int
    coverage_percent: float
    verdict: Literal["good", "poor"]
    reasons: tuple[str, ...] = ()


class Algorithm(Protocol):
    """How a profile is made and used."""

    #: 5. How many profile-and-rebuild rounds it takes, each on the build of the one before.
    rounds: int
    #: File name of the finished profile.
    profile_name: str

    def instrument(self, toolchain: Clang) -> BuildAddition:
        """1. What to add to a build so that a run of it can be profiled."""

    def reset(self) -> tuple[Request, ...]:
        """2a. What to ask of a booted device to forget what it has counted so far."""

    def collect(self) -> tuple[Request, ...]:
        """2b. What to ask of it for the raw profile: one reply with data for each request."""

    def convert(
        self,
        raw: tuple[Path, ...],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> Quality:
        """3. Write the profile ``output`` from the raw profiles.

        Raises:
            WorkError: the raw data is not readable.
        """

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        toolchain: Clang,
        runner: Callable[..., Completed],
    ) -> Quality:
        """Write the weighted sum of profiles."""

    def use(self, profile: Path, toolchain: Clang) -> BuildAddition:
        """4. What to add to a build so that it uses a profile."""


ALGORITHMS: Registry[Algorithm] = Registry("mepof.algorithm", "ALGORITHM", "algorithm")


def select(name: str) -> Algorithm:
    """The algorithm of that name.

    Raises:
        InputError: it is unknown, or is a stack, which no algorithm here supports yet.
    """
    if "+" in name:
        known = ", ".join(ALGORITHMS.names())
        raise InputError(f"stacked algorithm `{name}` is not available", f"known: {known}")
    return ALGORITHMS.get(name)
