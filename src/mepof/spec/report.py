"""``report``: everything that is known about a run."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, Part, StepModel


class ReportedImage(Part[In], Generic[In]):
    """An image of the evaluation.

    Attributes:
        build: None for the user's own file.
        trained: positions in ``collections`` of what its profile is made of; None where there is
            no profile, or part of it comes from outside.
    """

    name: str
    build: In | None = None
    trained: tuple[int, ...] | None = None


class ReportedProfile(Part[In], Generic[In]):
    """A profile that the program made."""

    name: str
    profile: In


class Report(StepModel[In], Generic[In]):
    """A report about one evaluation.

    Attributes:
        program: its text.
        collections: the training runs of all images.
    """

    kind: ClassVar[str] = "report"

    program: str
    seed: int
    evaluation: In
    images: tuple[ReportedImage[In], ...]
    profiles: tuple[ReportedProfile[In], ...]
    collections: tuple[In, ...] = ()
