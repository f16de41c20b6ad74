"""Quantities in which two cases are compared: metrics without the side that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mepof.measure.measurement import CaseMeasurement, Record
from mepof.measure.metrics import METRICS, CoreMetric, Metric, RepeatCount, Work

Side = Literal["kernel", "user", "both"]


class Measured(Record):
    """A quantity, and the metrics that measure it.

    Attributes:
        metric: of the kernel; of everything if ``user`` is None.
        user: of user space.
    """

    name: str
    metric: Metric
    user: Metric | None = None

    @property
    def title(self) -> str:
        """Its name in running text."""
        return self.metric.title.removeprefix("Kernel ") if self.user else self.metric.title

    @property
    def in_sentence(self) -> str:
        """The title within a sentence."""
        return self.title if self.title[:2].isupper() else self.title[0].lower() + self.title[1:]

    @property
    def of_core(self) -> bool:
        """Whether only a modelled core or a PMU measures it."""
        return isinstance(self.metric, CoreMetric)

    def cost(self, case: CaseMeasurement, side: Side) -> float | None:
        """Cost of one operation on a side; None if the device could not measure it."""
        if self.user is None:
            return self.metric.cost(case) if side == "both" else None
        kernel, user = self.metric.cost(case), self.user.cost(case)
        if side != "both":
            return kernel if side == "kernel" else user
        return None if kernel is None or user is None else kernel + user


def _measured() -> Mapping[str, Measured]:
    found: dict[str, Measured] = {}
    for metric in METRICS:
        if metric.control:
            continue  # the user's part of `instructions`
        if isinstance(metric, Work | RepeatCount):
            continue  # of the kernel alone
        if not metric.of_kernel:
            found[metric.name] = Measured(name=metric.name, metric=metric)
            continue
        name = metric.name.removeprefix("kernel_")
        found[name] = Measured(name=name, metric=metric, user=metric.of_user())
    return found


#: By name.
QUANTITIES: Mapping[str, Measured] = _measured()
