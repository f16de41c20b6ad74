"""``report.json`` as data; ``report.schema.json`` is generated from these models.

Scripts depend on the keys: add keys, never rename them. A number that does not exist (no baseline,
an image that failed) is null, never a zero that could be mistaken for a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    computed_field,
    model_validator,
)

from mepof.gate.verdict import CheckVerdict
from mepof.measure.case_pairs import PairRow
from mepof.measure.goal import GoalVerdict
from mepof.measure.measurement import (
    DEFAULT_PRECISION_PERCENT,
    Checked,
    Device,
    MemoryBytes,
    Record,
    SizeBytes,
)
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
from mepof.report.likeness import Kind as LikenessKind
from mepof.report.metrics import MAIN
from mepof.statistics import Verdict, reduction_percent
from mepof.statistics.interval import Method

SCHEMA: Literal["mepof-report/1"] = "mepof-report/1"
_MAIN = frozenset(metric.name for metric in MAIN)

Interval = tuple[float, float]


def _reduced(interval: Interval) -> Interval:
    low, high = interval
    return reduction_percent(low), reduction_percent(high)


class RuntimeMemory(Record):
    """Memory that the kernel of an image takes.

    Attributes:
        after_boot: before anything ran; null where it was not read.
        after_cases: when the last case had ended, each figure the median over the boots; null
            where it was not read.
    """

    after_boot: MemoryBytes | None = None
    after_cases: MemoryBytes | None = None


class Image(Checked, Record):
    """An image and whether its numbers count.

    Attributes:
        baseline: true for the image that the others are compared with.
        size_bytes: ``text`` is null for a bare image, of which only the file is known.
        boots: how many boots were measured.
        unsupported: cases that it cannot run, as ``suite/case``, with what each requires.
        indices: by metric group, for suites that define an index; higher is better.
        memory: at run time.
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
    memory: RuntimeMemory = RuntimeMemory()


class SummaryRow(Record):
    """The geometric mean over the cases, for one image and metric.

    Attributes:
        geomean_improvement_percent: (baseline / value - 1) * 100; ``interval_percent`` is its
            95 % confidence interval.
        verdict: ``faster`` means a lower cost, whatever the metric; ``slower`` a higher one.
        cases: how many cases the mean covers.
        boots: how many boots of the image it is based on; ``baseline_boots`` of the baseline,
            including those of its controls.
        interval_method: how the interval was computed; ``none`` where both ends are the estimate.
        p_value: of the hypothesis that there is no difference of practical interest.
        adjusted_p: after the correction for the number of rows; null for a row that could not
            have shown a difference.
        geomean_reduction_percent: (1 - value / baseline) * 100, as the page shows it;
            ``reduction_interval_percent`` is ``interval_percent`` converted to it.
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def geomean_reduction_percent(self) -> float:
        """How much less the image costs than the baseline; negative when it costs more."""
        return reduction_percent(self.geomean_improvement_percent)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reduction_interval_percent(self) -> Interval:
        """The 95 % confidence interval of the reduction."""
        return _reduced(self.interval_percent)


def _with_training(given: object) -> object:
    """A row of a report that only said whether the training ran the case, by its name."""
    if not isinstance(given, Mapping) or "training" in given or given.get("trained") is None:
        return given
    return {**given, "training": "trained" if given["trained"] else "untrained"}


class TrainingRow(SummaryRow):
    """The geometric mean over the cases that are trained, near, far or untrained.

    The verdicts of all such rows are corrected for their own number.
    """

    training: LikenessKind

    _earlier = model_validator(mode="before")(_with_training)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def trained(self) -> bool:
        """Whether they are trained."""
        return self.training == "trained"


class GroupRow(SummaryRow):
    """The geometric mean over the cases of a group, which is a metric of G4.

    The verdicts of all groups are corrected for their own number.
    """

    group: str


class BetweenRow(SummaryRow):
    """The geometric mean of an image against another one that is not the baseline.

    The verdicts of all such rows are corrected for their own number.
    """

    against: str


class Outlier(Record):
    """A boot whose cost is far from that of the build's other boots; it counts like them.

    Attributes:
        baseline: whether it is a boot of the baseline.
        build: which build of the image, from 0.
        deviation_percent: how much its cost exceeds the median of the build's boots.
    """

    baseline: bool
    build: int
    seed: int
    deviation_percent: float


class CaseRow(Record):
    """One case of one image in one metric; costs are per operation.

    Attributes:
        improvement_percent: (baseline / value - 1) * 100; null where nothing is compared.
        verdict: ``faster`` means a lower cost, whatever the metric; ``slower`` a higher one.
        boots: of the image, and ``baseline_boots`` of the baseline, including its controls'.
        interval_method: how the interval was computed; ``none`` where both ends are the estimate.
        p_value: null where nothing is compared.
        adjusted_p: after the correction for the number of rows; null for a row that could not
            have shown a difference.
        outliers: boots whose cost is far from the others'; none is dropped.
        training: how like the work that the image's profile counted the case is; null without a
            profile, and where both what it counted and what the training ran are unknown.
        trained_percent: of the case's kernel instructions, those in functions with a count in the
            profile; null where that is unknown.
        trained: whether ``training`` is ``trained``; null where that is null.
        reduction_percent: (1 - value / baseline) * 100, as the page shows it;
            ``reduction_interval_percent`` is ``interval_percent`` converted to it.
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
    training: LikenessKind | None = None
    trained_percent: float | None = None

    _earlier = model_validator(mode="before")(_with_training)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def trained(self) -> bool | None:
        """Whether the case is trained."""
        return None if self.training is None else self.training == "trained"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reduction_percent(self) -> float | None:
        """How much less the image costs than the baseline; negative when it costs more."""
        known = self.improvement_percent
        return None if known is None else reduction_percent(known)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reduction_interval_percent(self) -> Interval | None:
        """The 95 % confidence interval of the reduction."""
        known = self.interval_percent
        return None if known is None else _reduced(known)


class Disagreement(Record):
    """A case, or the mean, in which the image is better in one main metric and worse in another.

    Attributes:
        suite: null, as ``case`` is, for the geometric mean over the cases.
        better: the metrics whose verdict is ``faster``.
        worse: the metrics whose verdict is ``slower``.
    """

    image: str
    suite: str | None
    case: str | None
    better: tuple[str, ...]
    worse: tuple[str, ...]


class Control(Checked, Record):
    """The baseline compared with itself, where no difference is expected.

    Attributes:
        kind: ``same build`` was booted with other seeds; ``relinked`` has the same objects in
            another order.
        passed: it is sound, and no verdict is ``faster`` or ``slower``.
        summary: the same rows as for an image.
        cases: the same rows as for an image.
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

    @property
    def undecided(self) -> bool:
        """Whether it passed because no main metric has data enough for a verdict."""
        verdicts = {row.verdict for row in self.summary if row.metric in _MAIN}
        return self.passed and verdicts <= {"not enough data"}


class Phase(Record):
    """How long a step took when it ran; ``cached`` if that was in an earlier run.

    Attributes:
        started_seconds: when it started, counted from the start of the run; null if cached.
        waited_seconds: for a step of the critical path, from the end of its last input to its
            start; null for the other steps.
    """

    step: str
    kind: Literal["build", "boot", "run", "convert", "other"]
    seconds: NonNegativeFloat
    cached: bool
    started_seconds: NonNegativeFloat | None = None
    waited_seconds: NonNegativeFloat | None = None


class ProfileSummary(Record):
    """The profile that the image was optimised with, and whether it can be trusted.

    Attributes:
        functions: how many functions have a count above zero.
        coverage_percent: share of the kernel's functions that the profile covers.
        details: other facts about the profile, by title.
    """

    algorithm: str
    functions: NonNegativeInt
    coverage_percent: float
    verdict: Literal["good", "poor"]
    details: dict[str, str | int | float] = Field(default_factory=dict)


class Provenance(Record):
    """Everything that the result depends on.

    Attributes:
        tools: version of each tool, by name.
        kernel: which source, such as ``debian:linux-source-6.12 (6.12.48)``.
        program: the text of the G4 program.
        digests: SHA-256 of each step's artifact.
        flags: compiler and configuration flags, by image.
        command: the command that repeats the run.
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
        baseline: name of the image that the others are compared with; null if there is one image.
        warnings: what a reader must know before relying on the numbers.
        method: how the numbers were obtained, one paragraph per entry.
        engine_share_percent: share of the wall time not spent building, booting or running.
        by_training: geometric means over the cases of each ``training``, for images of which that
            is known.
        by_group: geometric means over the cases of each group.
        controls: the baseline compared with itself.
        precision_percent: an interval within this much of zero means no difference.
        figures: what the cases printed about themselves, for each image.
        core: null where no core was modelled; ``core_cases`` is then empty.
        core_cases: one entry for each image and case.
        functions: for each image except the baseline, the largest differences in cycles first;
            empty, and ``heatmaps`` null, where events were not attributed to locations.
        footprints: one entry for each image and case.
        trainings: one entry for each profile that the program collected.
        profiles: in the program's order.
        disagreements: where the main metrics of an image disagree.
        goals: whether each image meets each goal of the program.
        checks: the results of tests in the kernel's own tree.
        comparisons: cases compared with each other on one image.
        between: every image against each one before it, without the baseline.
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
    by_group: tuple[GroupRow, ...] = ()
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
    disagreements: tuple[Disagreement, ...] = ()
    goals: tuple[GoalVerdict, ...] = ()
    checks: tuple[CheckVerdict, ...] = ()
    comparisons: tuple[PairRow, ...] = ()
    between: tuple[BetweenRow, ...] = ()

    @property
    def failed_control(self) -> Control | None:
        """The A/A control of the baseline if it is not sound, so that nothing is compared."""
        return next((c for c in self.controls if c.kind == "same build" and not c.sound), None)

    def to_json(self) -> str:
        """The text of ``report.json``."""
        return self.model_dump_json(indent=2) + "\n"
