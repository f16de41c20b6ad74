"""``report``: a report on everything that is known about a run."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.measure.case_pairs import CasePair
from mepof.measure.goal import Goal
from mepof.plan.typed import In, Part, StepModel


class ReportedImage(Part[In], Generic[In]):
    """An image of the evaluation.

    Attributes:
        build: None for a file on the host.
        trained: positions in ``collections`` of the training runs of its profile; None if there
            is no profile, or if part of it is external.
        profile: that it is built with, of the algorithms in ``uses`` and for ``toolchain``.
    """

    name: str
    build: In | None = None
    trained: tuple[int, ...] | None = None
    profile: In | None = None
    uses: tuple[str, ...] = ()
    toolchain: str = ""


class ReportedProfile(Part[In], Generic[In]):
    """A profile that the program made."""

    name: str
    profile: In


class OwnGroup(Part[In], Generic[In]):
    """A group of cases that goals name by the file that describes an app."""

    path: str
    file: In


class Report(StepModel[In], Generic[In]):
    """A report about one evaluation.

    Attributes:
        program: the G4 text.
        collections: the training runs of all images.
        goals: that every image except the baseline must meet.
        own_groups: those among the goals' that are apps of the user's.
        checks: the results of tests.
        executed: in which functions of the baseline each case executes how much; None where the
            evaluation or nothing tells.
        pairs: cases that are compared with each other, beside those that their suites compare.
    """

    kind: ClassVar[str] = "report"

    program: str
    seed: int
    evaluation: In
    images: tuple[ReportedImage[In], ...]
    profiles: tuple[ReportedProfile[In], ...]
    collections: tuple[In, ...] = ()
    goals: tuple[Goal, ...] = ()
    own_groups: tuple[OwnGroup[In], ...] = ()
    checks: tuple[In, ...] = ()
    executed: In | None = None
    pairs: tuple[CasePair, ...] = ()
