"""``profile-merge``: the weighted sum of profiles."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Generic

from mepof.plan.typed import In, Part, StepModel


class WeightedProfile(Part[In], Generic[In]):
    """A profile, and the factor for its counts."""

    profile: In
    weight: Fraction


class ProfileMerge(StepModel[In], Generic[In]):
    """A merge of profiles of one algorithm."""

    kind: ClassVar[str] = "profile-merge"

    algorithm: str
    toolchain: str
    profiles: tuple[WeightedProfile[In], ...]
