"""``measure``: the cases of some metrics on all images of an ``eval``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class Measure(StepModel[In], Generic[In]):
    """A measurement of images that are booted in turns.

    Attributes:
        images: builds or image files, the baseline first.
        relinked: the baseline in other layouts.
        min_boots: of each image.
        max_boots: of each image.
        precision: width of an interval, in percent, that is narrow enough.
        budget: seconds after which no further round begins.
        core: name of the core that is modelled, if any.
        suites: programs of suites that are added to the guest, by suite.
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
    core: str | None = None
    suites: Mapping[str, In] = {}
    artifacts: Mapping[str, In] = {}
