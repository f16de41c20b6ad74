"""Comparisons of two cases on one image, as suites and programs ask for them."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, model_validator

from mepof.described import Described, Word, check_distinct

By = Literal["ratio", "difference", "per-event"]
"""How two cases are compared: the cost of the first divided by that of the second, the first minus
the second, or this difference divided by the difference in events, which is the cost of one event.
"""

WAYS: tuple[By, ...] = get_args(By)

Quantity = Literal[
    "instructions",
    "taken_branches",
    "cycles",
    "l1i_misses",
    "l1d_misses",
    "l2_misses",
    "itlb_misses",
    "dtlb_misses",
    "tlb_walks",
    "branch_mispredictions",
    "btb_misses",
    "latency",
    "time_per_byte",
    "guest_time",
]
"""What two cases can be compared in: costs per operation, of the kernel and of user space.
``mepof.measure.quantities`` says how each is measured."""

QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


class Asked(Described):
    """How two cases are compared.

    Attributes:
        by: the way.
        metrics: the quantities that are compared; if there are none, the default ones.
        event: of which ``per-event`` gives the cost; None in the other ways.
    """

    by: By
    metrics: tuple[Quantity, ...] = ()
    event: Quantity | None = None

    @model_validator(mode="after")
    def _fits(self) -> Asked:
        check_distinct(self.metrics)
        if (self.by == "per-event") != (self.event is not None):
            raise ValueError("`event` belongs to `per-event`, which needs one")
        if self.event in self.metrics:
            raise ValueError(f"`{self.event}` costs one of itself")
        return self


class ComparisonEntry(Asked):
    """A comparison in a suite's file.

    Attributes:
        title: in running text.
        cases: the first and the second, both of the suite.
    """

    title: str
    cases: tuple[Word, Word]
    metrics: tuple[Quantity, ...] = Field(min_length=1)
