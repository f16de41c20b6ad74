"""How good a profile is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Quality:
    """How good a profile is.

    Attributes:
        functions: functions that the profile knows.
        executed: those of them that ran.
        coverage_percent: executed of known, in percent.
        verdict: ``good``, or ``poor`` where a build with it is not worth its time.
        reasons: why it is poor.
        exact: everything was counted, nothing sampled; of a layout on top of a profile, in that
            profile.
    """

    functions: int
    executed: int
    coverage_percent: float
    verdict: Literal["good", "poor"]
    reasons: tuple[str, ...] = ()
    exact: bool = False
