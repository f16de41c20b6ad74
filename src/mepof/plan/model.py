"""The plan: a DAG of steps as pure data, which g4 makes and the engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
ResultKind = Literal["image", "profile", "measurement", "report", "check", "flash", "package"]


@dataclass(frozen=True)
class StepInput:
    """The artifact of another step: the whole directory."""

    step: str


@dataclass(frozen=True)
class HostInput:
    """A file or directory on the host, identified by content; it is only read."""

    path: str


Input = StepInput | HostInput


@dataclass(frozen=True)
class Step:
    """One node of the DAG; it makes one artifact, a directory.

    Attributes:
        id: readable and unique in its plan, such as ``opt/build``.
        kind: selects the step body that performs it.
        params: everything that affects its result, except inputs and tools.
        inputs: the artifacts and host files that it reads, by name.
    """

    id: str
    kind: str
    params: Mapping[str, Json] = field(default_factory=dict)
    inputs: Mapping[str, Input] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """A named result of the program, which later statements and the user can refer to."""

    name: str
    kind: ResultKind
    step: str


@dataclass(frozen=True)
class Plan:
    """Steps in topological order, and the named results."""

    program: str
    seed: int
    steps: tuple[Step, ...]
    results: tuple[Result, ...]

    def step(self, identifier: str) -> Step:
        """The step with that id; KeyError if there is none."""
        for step in self.steps:
            if step.id == identifier:
                return step
        raise KeyError(identifier)
