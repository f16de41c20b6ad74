"""``check``: whether images pass the tests that the first of them passes."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.gate.results import Gate
from mepof.plan.typed import In, Part, StepModel


class CheckedGate(Part[In], Generic[In]):
    """The results of one gate's tests, image by image."""

    gate: Gate
    results: tuple[In, ...]


class Check(StepModel[In], Generic[In]):
    """A comparison of test results.

    Attributes:
        images: their names, the baseline first.
    """

    kind: ClassVar[str] = "check"

    images: tuple[str, ...]
    gates: tuple[CheckedGate[In], ...]
