"""``profile-convert``: the conversion of a raw profile to what the compiler reads."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class ProfileConvert(StepModel[In], Generic[In]):
    """A conversion.

    Attributes:
        round: of the algorithm.
        below: the algorithms of the stack whose profiles ``profile`` holds.
        raw: the collected raw profile, or a branch trace on the host.
        kernel: the build that was profiled.
        profile: of the earlier rounds.
    """

    kind: ClassVar[str] = "profile-convert"

    algorithm: str
    round: int = 1
    toolchain: str
    raw: In
    kernel: In
    below: tuple[str, ...] = ()
    profile: In | None = None
