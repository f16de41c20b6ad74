"""``app-programs``: what an app that the user describes adds to a guest."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class AppPrograms(StepModel[In], Generic[In]):
    """The programs and files of one app for one architecture.

    Attributes:
        app: the file that describes it.
    """

    kind: ClassVar[str] = "app-programs"

    arch: str
    app: In
