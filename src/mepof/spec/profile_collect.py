"""``profile-collect``: a training run that collects a raw profile."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Generic, Self

from pydantic import model_validator

from mepof.device.observation import Branches
from mepof.plan.typed import In, Part, StepModel

#: The scenario that runs every action of the apps once.
EVERY_ACTION = "trav"


class TrainingApp(Part[In], Generic[In]):
    """An app of a training run.

    Attributes:
        name: of an installed app.
        file: the user's file that describes one.
        programs: what that file adds to the guest.
        weight: its share of the actions, for scenarios that draw them at random.
        script: the file that lists its actions, for scenarios that read one.
    """

    name: str | None = None
    file: In | None = None
    programs: In | None = None
    weight: Fraction | None = None
    script: In | None = None

    @model_validator(mode="after")
    def _is_named_or_described(self) -> Self:
        if (self.name is None) == (self.file is None):
            raise ValueError("an app has a name or a file that describes it")
        return self


class ProfileCollect(StepModel[In], Generic[In]):
    """A boot of a kernel that can be profiled, under a scenario.

    Attributes:
        algorithm: None only records which code runs.
        round: of the algorithm.
        actions: how many actions to pick, for scenarios that do not fix the number.
        without: the cases that the training must not run.
        record: how to record branches, for algorithms that need them.
        cpus: of the guest.
        suites: suite programs that are added to the guest, by suite.
        artifacts: what the device needs for recording, by the device's names.
    """

    kind: ClassVar[str] = "profile-collect"

    algorithm: str | None = None
    round: int = 1
    scenario: str
    apps: tuple[TrainingApp[In], ...]
    actions: int
    arch: str
    device: str
    seed: int
    kernel: In
    guest: In
    without: tuple[str, ...] = ()
    record: Branches | None = None
    cpus: int = 1
    suites: Mapping[str, In] = {}
    artifacts: Mapping[str, In] = {}
