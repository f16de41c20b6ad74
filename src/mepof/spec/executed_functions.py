"""``executed-functions``: in which functions of a kernel each measured case executes how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel
from mepof.spec.measure import MeasuredApp


class ExecutedFunctions(StepModel[In], Generic[In]):
    """One boot of a kernel in which each case runs once.

    Attributes:
        kernel: the build.
        cpus: of the guest.
        apps: of the user's, after the metrics.
        suites: suite programs that are added to the guest, by suite.
        artifacts: what the device needs to see which code runs, by the device's names.
    """

    kind: ClassVar[str] = "executed-functions"

    arch: str
    device: str
    metrics: tuple[str, ...]
    seed: int
    kernel: In
    guest: In
    cpus: int = 1
    apps: tuple[MeasuredApp[In], ...] = ()
    suites: Mapping[str, In] = {}
    artifacts: Mapping[str, In] = {}
