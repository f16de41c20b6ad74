"""``measure``: the cases of the metrics on all images of an ``eval``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic

from mepof.plan.typed import In, Part, StepModel


class MeasuredApp(Part[In], Generic[In]):
    """An app of the user's, whose actions are measured as cases.

    Attributes:
        file: that describes it.
        programs: what that file adds to the guest.
    """

    file: In
    programs: In


class Measure(StepModel[In], Generic[In]):
    """A measurement of images that are booted in turn.

    Attributes:
        images: builds or image files, the baseline first.
        relinked: the baseline in other layouts.
        min_boots: per image.
        max_boots: per image.
        precision: width of a confidence interval, in percent, at which measuring stops.
        budget: seconds after which no further round begins.
        core: name of the core to model, or a file of the user's that describes it, if any.
        cpus: of the guest.
        apps: of the user's, measured after the metrics.
        suites: suite programs that are added to the guest, by suite.
        artifacts: what the device needs for counting, by the device's names.
    """

    kind: ClassVar[str] = "measure"

    arch: str
    device: str
    metrics: tuple[str, ...]
    seed: int
    min_boots: int
    max_boots: int
    precision: float
    images: tuple[In, ...]
    guest: In
    relinked: tuple[In, ...] = ()
    budget: int | None = None
    core: str | In | None = None
    cpus: int = 1
    apps: tuple[MeasuredApp[In], ...] = ()
    suites: Mapping[str, In] = {}
    artifacts: Mapping[str, In] = {}
