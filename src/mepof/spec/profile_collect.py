"""``profile-collect``: a training run and the raw profile that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Generic

from mepof.device.observation import Branches
from mepof.plan.typed import In, Part, StepModel


class TrainingApp(Part[In], Generic[In]):
    """An app of a training.

    Attributes:
        weight: its share among the apps, for scenarios that draw.
        script: the user's file that lists its actions, for scenarios that read one.
    """

    name: str
    weight: Fraction | None = None
    script: In | None = None


class ProfileCollect(StepModel[In], Generic[In]):
    """A boot of a kernel that can be profiled, under a scenario.

    Attributes:
        round: of the algorithm.
        actions: how many a scenario without a number of its own picks.
        without: the cases that the training must not run.
        record: how branches are recorded, for algorithms that need it.
        suites: programs of suites that are added to the guest, by suite.
        artifacts: what the device needs for that, by the device's names.
    """

    kind: ClassVar[str] = "profile-collect"

    algorithm: str
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
    suites: Mapping[str, In] = {}
    artifacts: Mapping[str, In] = {}
