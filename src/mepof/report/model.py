"""``report.json`` as data; ``report.schema.json``, published beside it, is made from these models.

The keys are a promise to scripts: add, never rename. A number that does not exist (no baseline,
an image that failed) is null, never a zero that could be taken for a result.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, NonNegativeFloat, NonNegativeInt

from mepof.measure.measurement import DEFAULT_PRECISION_PERCENT, PASSED, Device, Record, SizeBytes
from mepof.measure.metrics import Kind
from mepof.report.detail import (
    Core,
    CoreCase,
    Figure,
    Footprint,
    FunctionShare,
    Heatmaps,
    ProfileQuality,
    Training,
)
from mepof.statistics import Verdict
from mepof.statistics.interval import Method

SCHEMA: Literal["mepof-report/1"] = "mepof-report/1"

Interval = tuple[float, float]


class Image(Record):
    """An image and whether its numbers count.

    Attributes:
        baseline: the others are compared with this one.
        boots: how many boots were measured.
        unsupported: cases that it cannot run, as ``suite/case``, with what each needs.
        indices: of suites that have one, by metric group; higher is better.
    """

    name: str
    digest: str
    baseline: bool
    booted: bool
    self_check: str
    size_bytes: SizeBytes
    sections: dict[str, NonNegativeInt]
    device: Device
    boots: NonNegativeInt
    unsupported: dict[str, str] = Field(default_factory=dict)
    indices: dict[str, float] = Field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether it booted and passed the self-checks."""
        return self.booted and self.self_check == PASSED


class SummaryRow(Record):
    """The geometric mean over the cases, for one image and metric.

    Attributes:
        cases: how many cases it is the mean of.
        boots: how many boots of the image it rests on; ``baseline_boots`` of the baseline.
        interval_method: how the interval was made; ``none`` where both ends are the estimate.
        p_value: of the hypothesis that there is no difference of practical interest.
        adjusted_p: after the correction for the number of rows; null for a row that could not
            have shown a difference.
    """

    image: str
    metric: str
    kind: Kind
    geomean_improvement_percent: float
    interval_percent: Interval
    verdict: Verdict
    cases: int
    boots: int
    baseline_boots: int
    interval_method: Method
    p_value: float
    adjusted_p: float | None


class TrainingRow(SummaryRow):
    """The geometric mean over the cases that the training ran, or over those that it did not."""

    trained: bool


class Outlier(Record):
    """A boot that is unlike the others of its build; it counts like them.

    Attributes:
        baseline: it is one of the baseline's.
        build: which build of the image, from 0.
        deviation_percent: how far its cost lies from the median of the build's boots.
    """

    baseline: bool
    build: int
    seed: int
    deviation_percent: float


class CaseRow(Record):
    """One case of one image in one metric; costs are per operation.

    Attributes:
        boots: of the image, and ``baseline_boots`` of the baseline.
        interval_method: how the interval was made; ``none`` where both ends are the estimate.
        p_value: null where nothing is compared.
        adjusted_p: after the correction for the number of rows; null for a row that could not
            have shown a difference.
        outliers: boots unlike the others; none is left out.
        trained: whether the training of the image's profile ran the case; null where there is
            no profile, or nothing is known of its training.
    """

    image: str
    suite: str
    case: str
    group: str
    metric: str
    kind: Kind
    baseline: float | None
    value: float | None
    unit: str
    improvement_percent: float | None
    interval_percent: Interval | None
    verdict: Verdict
    boots: int
    baseline_boots: int = 0
    interval_method: Method | None = None
    p_value: float | None = None
    adjusted_p: float | None = None
    outliers: tuple[Outlier, ...] = ()
    trained: bool | None = None


class Control(Record):
    """The baseline compared with itself, where nothing may differ.

    Attributes:
        kind: ``same build`` was booted with other seeds; ``relinked`` has the same objects in
            another order.
        passed: it is sound, and no verdict is ``faster`` or ``slower``.
        summary: as of an image.
        cases: as of an image.
    """

    kind: Literal["same build", "relinked"]
    image: str
    digest: str
    booted: bool
    self_check: str
    boots: NonNegativeInt
    passed: bool
    summary: tuple[SummaryRow, ...]
    cases: tuple[CaseRow, ...]


class Phase(Record):
    """How long a step took when it ran; ``cached`` if that was in an earlier run.

    Attributes:
        started_seconds: when it began, from the beginning of the run; null if it was cached.
    """

    step: str
    kind: Literal["build", "boot", "run", "convert", "other"]
    seconds: NonNegativeFloat
    cached: bool
    started_seconds: NonNegativeFloat | None = None


class ProfileSummary(Record):
    """The profile that the image was optimised with, and whether it is worth trusting.

    Attributes:
        functions: functions with a count above zero.
        coverage_percent: share of the kernel's functions that the profile covers.
        details: anything else worth telling, by its title.
    """

    algorithm: str
    functions: NonNegativeInt
    coverage_percent: float
    verdict: Literal["good", "poor"]
    details: dict[str, str | int | float] = Field(default_factory=dict)


class Provenance(Record):
    """Everything that the result depends on.

    Attributes:
        tools: version of every tool, by its name.
        kernel: which source, such as ``debian:linux-source-6.12 (6.12.48)``.
        program: the program's text.
        digests: SHA-256 of every input and result worth naming.
        flags: what the tools were told, by tool or step.
        command: the one command that does it again.
    """

    tools: dict[str, str]
    kernel: str
    program: str
    seed: int
    digests: dict[str, str] = Field(default_factory=dict)
    flags: dict[str, str] = Field(default_factory=dict)
    command: str = "mepof run PROGRAM.g4"


class Report(Record):
    """The whole report.

    Attributes:
        baseline: name of the image that the others are compared with, if there is one.
        warnings: what a reader must know before believing the numbers.
        method: how the numbers were made, one paragraph an entry.
        engine_share_percent: share of the wall time that was not building, booting, running.
        by_training: the geometric means over trained and over other cases apart, of images of
            whose training something is known.
        controls: the baseline against itself.
        precision_percent: images whose interval lies within this much do not differ.
        figures: what the cases told of themselves, of every image.
        core: null where none was modelled, and then there is nothing in ``core_cases``.
        core_cases: of every image and case.
        functions: of every image but the baseline, the largest differences in cycles first;
            empty, as ``heatmaps`` is null, where it is not known where events are.
        footprints: of every image and case.
        trainings: of every image with a profile of the program's own.
        profiles: of the program, in its order.
    """

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    schema_id: Literal["mepof-report/1"] = Field(default=SCHEMA, alias="schema")
    baseline: str | None
    images: tuple[Image, ...]
    summary: tuple[SummaryRow, ...]
    cases: tuple[CaseRow, ...]
    phases: tuple[Phase, ...]
    profile: ProfileSummary | None
    provenance: Provenance
    warnings: tuple[str, ...]
    method: tuple[str, ...]
    engine_share_percent: float | None = None
    by_training: tuple[TrainingRow, ...] = ()
    controls: tuple[Control, ...] = ()
    precision_percent: float = DEFAULT_PRECISION_PERCENT
    figures: tuple[Figure, ...] = ()
    core: Core | None = None
    core_cases: tuple[CoreCase, ...] = ()
    functions: tuple[FunctionShare, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    heatmaps: Heatmaps | None = None
    trainings: tuple[Training, ...] = ()
    profiles: tuple[ProfileQuality, ...] = ()

    def to_json(self) -> str:
        """The text of ``report.json``."""
        return self.model_dump_json(indent=2) + "\n"
