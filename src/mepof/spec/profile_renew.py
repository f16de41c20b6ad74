"""``profile-renew``: a new profile, with what an older one still has to say."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class ProfileRenew(StepModel[In], Generic[In]):
    """A sum of two profiles of one algorithm, the older of which counts less.

    Attributes:
        new: profile of the last round.
        old: profile that the kernel of that round was built with, or that is older than it.
        decay: total of the old profile in the sum, relative to that of the new one; from 0 to
            1.
        part: the new profile counted some files of the kernel only; the others keep the counts of
            the old one.
    """

    kind: ClassVar[str] = "profile-renew"

    algorithm: str
    toolchain: str
    new: In
    old: In
    decay: Fraction
    part: bool = False
