"""What was measured: images, their boots, and the artifact ``evaluation.json``.

All counts are totals of one measured interval, which holds ``operations`` operations of its
case; whoever reports them divides. An interval is measured once in every boot, and every boot
has a seed of its own, so that what differs from boot to boot (layout randomisation, entropy)
varies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    ValidationError,
    model_validator,
)

from mepof.described import first_error
from mepof.errors import InputError

PASSED = "passed"
DEFAULT_PRECISION_PERCENT = 1.0


class Record(BaseModel):
    """Base of the stored models: immutable, and every number finite."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Device(Record):
    """What the image was measured on.

    Attributes:
        name: the device's name in G4, such as ``qemu``.
        accel: what executes the instructions: ``tcg``, ``kvm``, ``hardware``.
        cpu: processor model.
        mode: how time passes: ``icount`` when it is derived from the instruction count.
    """

    name: str
    accel: str
    cpu: str
    mode: str = ""


class SizeBytes(Record):
    """Sizes in bytes: the kernel's text, and the bootable image as stored."""

    text: NonNegativeInt
    image: NonNegativeInt


class ModelledSide(Record):
    """What a model of a core made of the kernel's or the user's part of an interval.

    Attributes:
        events: by the plugin's name of the event (docs/pmu.md).
        cycles: what they cost, by what it goes to; the sum is the whole.
    """

    events: dict[str, NonNegativeInt]
    cycles: dict[str, NonNegativeFloat]


class Modelled(Record):
    """What the emulated PMU modelled, and the core that it modelled."""

    core: str
    kernel: ModelledSide
    user: ModelledSide


class Counted(Record):
    """What the PMU of a core counted by ``perf stat`` (docs/hardware.md).

    Attributes:
        counters: the name of what was counted on that kind of core.
        operations: of which the figures are the totals: the case's, less those of a shorter run
            of it, whose figures were taken off.
        whole_program: there was no shorter run, so what surrounds the work is in the figures.
        figures: by the name of the metric.
        lacking: why a metric has no figure.
    """

    counters: str
    operations: int = Field(gt=0)
    whole_program: bool
    figures: dict[str, NonNegativeInt]
    lacking: dict[str, str] = Field(default_factory=dict)


class CaseMeasurement(Record):
    """One case in one boot; totals over the measured interval.

    Attributes:
        suite: the suite's name, such as ``kbench``.
        case: the case's name, unique in its suite.
        metric_group: G4's name of the group: ``syscall``, ``overhead``, ``pipe``, ``proc``,
            ``file``.
        operations: how many operations the interval holds.
        check: what the case computed, as it printed it.
        kernel_instructions: and its three siblings: counts, or None where the device has no
            counter for it.
        guest_nanoseconds: time on the guest's clock.
        figures: what else the case printed of itself, such as ``p99_ns`` of its operations'
            latencies on the guest's clock, or ``bytes`` that they moved.
        modelled: None where no core was modelled.
        counted: None where no PMU counted; where one did, the four counts above are None.
    """

    suite: str
    case: str
    metric_group: str
    operations: int = Field(gt=0)
    check: str
    kernel_instructions: NonNegativeInt | None
    user_instructions: NonNegativeInt | None
    kernel_taken_branches: NonNegativeInt | None
    user_taken_branches: NonNegativeInt | None
    guest_nanoseconds: NonNegativeInt
    figures: dict[str, NonNegativeInt] = Field(default_factory=dict)
    modelled: Modelled | None = None
    counted: Counted | None = None


class Unsupported(Record):
    """A case that the image cannot run.

    Attributes:
        needs: what it lacks, as the case says, such as ``CONFIG_VETH``.
    """

    suite: str
    case: str
    needs: str


class Boot(Record):
    """All cases of one boot, and those that it could not run."""

    seed: int
    cases: tuple[CaseMeasurement, ...]
    unsupported: tuple[Unsupported, ...] = ()

    @model_validator(mode="after")
    def _one_of_each_case(self) -> Boot:
        told = [(c.suite, c.case) for c in self.cases]
        told += [(c.suite, c.case) for c in self.unsupported]
        if len(set(told)) != len(told):
            raise ValueError(f"a case was measured twice in the boot with seed {self.seed}")
        return self


class Measurement(Record):
    """Everything that was measured on one image.

    Attributes:
        image: the name by which the program knows it.
        digest: SHA-256 of the bootable image, hexadecimal.
        booted: whether every boot reached the agent.
        self_check: ``passed``, or what went wrong.
        sections: size in bytes of each section of interest.
        boots: one entry for each boot, each with another seed.
    """

    image: str
    digest: str
    device: Device
    booted: bool
    self_check: str
    size_bytes: SizeBytes
    sections: dict[str, NonNegativeInt] = Field(default_factory=dict)
    boots: tuple[Boot, ...] = ()

    @model_validator(mode="after")
    def _one_boot_of_each_seed(self) -> Measurement:
        if len({boot.seed for boot in self.boots}) != len(self.boots):
            raise ValueError("two boots have the same seed")
        return self

    @property
    def sound(self) -> bool:
        """Whether it booted and passed the self-checks: only then do its numbers count."""
        return self.booted and self.self_check == PASSED


class Evaluation(Record):
    """The artifact ``evaluation.json``: all images of an ``eval``, measured in turns.

    Attributes:
        images: the baseline first; what they are called is not known here.
        same_build: the baseline with other seeds, the A/A control.
        relinked: the baseline in other layouts.
        precision_percent: how narrow the intervals were to be, to either side.
        ended: why there were no further boots.
    """

    images: tuple[Measurement, ...]
    same_build: Measurement | None = None
    relinked: tuple[Measurement, ...] = ()
    precision_percent: float = DEFAULT_PRECISION_PERCENT
    ended: str = ""


Kind = Literal["counted", "modelled", "timed"]


class Metric(Record):
    """A cost per operation; lower is better.

    Attributes:
        name: its name in ``report.json``.
        title: its name in running text.
        unit: what one operation costs it in.
        field: the field of CaseMeasurement that holds its total.
        control: it must not move between images: the program under test is the same.
    """

    name: str
    title: str
    unit: str
    field: str = ""
    control: bool = False

    @property
    def of_kernel(self) -> bool:
        """Whether it is about kernel mode alone."""
        return self.name.startswith("kernel_")

    @property
    def may_be_none(self) -> bool:
        """Whether a sound interval can have none of it, and then no ratio."""
        return False

    def cost(self, case: CaseMeasurement) -> float | None:
        """Cost of one operation, or None where the device could not tell it."""
        if case.counted is None or self.name == GUEST_TIME:
            return self.emulated_cost(case)
        total = case.counted.figures.get(self.name)
        return None if total is None else total / case.counted.operations

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Cost of one operation where no PMU counted."""
        total: int | None = getattr(case, self.field)
        return None if total is None else total / case.operations

    def kind(self, device: Device) -> Kind:
        """Whether the figure was counted, timed, or follows from a model.

        Under icount the guest's clock advances by one nanosecond with every instruction, so
        its time is a model, not a measurement.
        """
        if self.name != GUEST_TIME:
            return "counted"
        return "modelled" if device.mode.startswith("icount") else "timed"


class CoreMetric(Metric):
    """What a core makes of the kernel's work: modelled under emulation, counted by its PMU."""

    def kind(self, device: Device) -> Kind:
        """Modelled where an emulator executes."""
        return "modelled" if device.accel == EMULATED else "counted"


class CoreCycles(CoreMetric):
    """The kernel's cycles."""

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Modelled cycles of one operation, or None without a model."""
        if case.modelled is None:
            return None
        return sum(case.modelled.kernel.cycles.values()) / case.operations


class CoreEvents(CoreMetric):
    """Events of the kernel in the core's caches, TLBs and predictors.

    Attributes:
        events: the emulated PMU's names of those that are summed.
    """

    events: tuple[str, ...]

    @property
    def may_be_none(self) -> bool:
        """Some events do not happen in short work."""
        return True

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Events of one operation, or None without a model."""
        if case.modelled is None:
            return None
        return sum(case.modelled.kernel.events[name] for name in self.events) / case.operations


GUEST_TIME = "guest_time"
EMULATED = "tcg"
METRICS: tuple[Metric, ...] = (
    Metric(
        name="kernel_instructions",
        title="Kernel instructions",
        unit="instructions/operation",
        field="kernel_instructions",
    ),
    Metric(
        name="kernel_taken_branches",
        title="Kernel taken branches",
        unit="branches/operation",
        field="kernel_taken_branches",
    ),
    Metric(
        name="user_instructions",
        title="User instructions",
        unit="instructions/operation",
        field="user_instructions",
        control=True,
    ),
    CoreCycles(name="kernel_cycles", title="Kernel cycles", unit="cycles/operation"),
    *(
        CoreEvents(
            name=f"kernel_{name}",
            title=f"Kernel {title}",
            unit="events/operation",
            events=events,
        )
        for name, title, events in (
            ("l1i_misses", "L1I misses", ("l1i_misses",)),
            ("l1d_misses", "L1D misses", ("l1d_misses",)),
            ("l2_misses", "L2 misses", ("l2_code_misses", "l2_data_misses")),
            ("itlb_misses", "instruction TLB misses", ("itlb_misses",)),
            ("dtlb_misses", "data TLB misses", ("dtlb_misses",)),
            ("tlb_walks", "page walks", ("itlb_walks", "dtlb_walks")),
            (
                "branch_mispredictions",
                "mispredicted branches",
                (
                    "direction_mispredictions",
                    "indirect_mispredictions",
                    "return_mispredictions",
                ),
            ),
            ("btb_misses", "branch target buffer misses", ("btb_misses",)),
        )
    ),
    Metric(name=GUEST_TIME, title="Guest time", unit="ns/operation", field="guest_nanoseconds"),
)


def read_evaluation(path: Path) -> Evaluation:
    """Read an ``evaluation.json``.

    Raises:
        InputError: it cannot be read or is not an evaluation.
    """
    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path} is not an evaluation: {first_error(error)}") from error
