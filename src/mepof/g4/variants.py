"""The properties of the installed variants that a plan depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from mepof.device.observation import ArtifactNeed, Branches, Measure

Argument = Literal["none", "weight", "script", "memory"]


class Rounds(Protocol):
    """The properties of an algorithm that a plan depends on."""

    #: The number of its profile-and-rebuild rounds.
    rounds: int
    #: Its profiles fit only the exact build that was profiled.
    same_build: bool
    #: It needs a device to record branches.
    records_branches: bool
    #: Of the branch stacks that it is made from; None where it takes every branch.
    period: int | None
    #: A build that uses its profile can be profiled in turn.
    repeats: bool
    #: A profile names the functions that ran.
    names_functions: bool
    profile_names: tuple[str, ...]


class Needs(Protocol):
    """The properties of a device that a plan depends on."""

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        """The artifacts that it needs for an observation, by name."""


@dataclass(frozen=True)
class Variants:
    """The properties of the installed variants that a plan depends on.

    Attributes:
        algorithms: all algorithms, by name.
        default_algorithm: the one assumed for external profiles with an unknown suffix.
        devices: all devices, by name.
        levels: the options that also apply to builds before the last one of a statement.
        guest_additions: for each metric, the suites whose programs are added to the guest.
        app_additions: the same for each app.
        arguments: for each scenario, what may follow an app and a colon.
        default_app: what a scenario exercises if the program names no app.
        interactive: the scenarios in which the user works at the console.
        recorders: the devices that record all branches.
        whole: the options for which functions that never ran are part of a profile.
        cases: all cases, as ``suite/case``.
        beside: the formats of packages that are installed beside other kernels.
        of_source: the formats of packages that have what a kernel is built of.
        locators: the devices that say which code was executed.
    """

    algorithms: Mapping[str, Rounds]
    default_algorithm: str
    devices: Mapping[str, Needs]
    levels: frozenset[str]
    guest_additions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    app_additions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    default_app: str = ""
    interactive: frozenset[str] = frozenset()
    recorders: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    cases: tuple[str, ...] = ()
    beside: frozenset[str] = frozenset()
    of_source: frozenset[str] = frozenset()
    locators: frozenset[str] = frozenset()
