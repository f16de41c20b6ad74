"""``flash``: an image that a phone starts from now on."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class Flash(StepModel[In], Generic[In]):
    """Flashing a phone.

    Attributes:
        image: its name, for messages.
        kernel: a build or an image file.
        guest: with the programs of the self-check.
        after: reports and checks of the statements before it. A check that the image fails
            forbids it.
    """

    kind: ClassVar[str] = "flash"

    image: str
    arch: str
    device: str
    seed: int
    kernel: In
    guest: In
    after: tuple[In, ...] = ()
