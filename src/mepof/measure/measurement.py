"""Measurements of images and their boots, and the file ``evaluation.json``.

All counts are totals of one measured interval, which has ``operations`` operations of its case;
the report divides. Each boot measures every interval once, and has its own seed, so that what
differs from boot to boot (layout randomisation, entropy) varies.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    ValidationError,
    computed_field,
    model_validator,
)

from mepof.described import first_error
from mepof.errors import InputError

PASSED = "passed"
_APP = "the app `"
DEFAULT_PRECISION_PERCENT = 1.0


def failure_of_app(title: str, why: str) -> str:
    """What ``self_check`` says if an app failed: the kernel's own check passed before it ran."""
    return f"{_APP}{title}` failed: {why}"


class Checked:
    """What is said of an image by a record that has these two of its fields."""

    if TYPE_CHECKING:  # a record has its fields in its own order
        booted: bool
        self_check: str

    @property
    def sound(self) -> bool:
        """Whether it booted and passed the self-checks; otherwise its numbers are not used."""
        return self.booted and self.self_check == PASSED

    @property
    def app_failed(self) -> bool:
        """Whether it is not sound because an app of the user's failed on it: the kernel passed its
        own self-check."""
        return self.booted and self.self_check.startswith(_APP)

    @property
    def how_it_failed(self) -> str:
        """How it failed if it is not sound, in words that follow its name."""
        if not self.booted:
            return "did not boot"
        if self.app_failed:
            return "passed its self-check, but an app failed on it"
        return "failed its self-check"


def control_of(image: str) -> str:
    """What the A/A control of an image is called in sentences."""
    return f"the A/A control of {image}"


class Record(BaseModel):
    """Base of the stored models: immutable, with finite numbers only."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Device(Record):
    """The device on which an image was measured.

    Attributes:
        name: its name in G4, such as ``qemu``.
        accel: what executes the instructions: ``tcg``, ``kvm``, ``hardware``.
        cpu: processor model.
        mode: ``icount`` if the guest's time is derived from the instruction count.
    """

    name: str
    accel: str
    cpu: str
    mode: str = ""


class SizeBytes(Record):
    """Sizes in bytes.

    Attributes:
        text: of the kernel's code; None where only the bootable image is known.
        image: of the bootable image as stored.
    """

    text: NonNegativeInt | None
    image: NonNegativeInt


class MemoryBytes(Record):
    """A kernel's memory in bytes, at one time.

    Attributes:
        reserved: what the kernel keeps from its allocator: its image, its static data, and the
            map of all pages; None where the size of the machine's memory is unknown.
        allocated: neither free nor in a cache that can be dropped, as ``free`` shows it.
        slab: of ``allocated`` and of those caches, kernel objects.
        page_tables: of ``allocated``.
        kernel_stacks: of ``allocated``.
    """

    reserved: NonNegativeInt | None
    allocated: NonNegativeInt
    slab: NonNegativeInt
    page_tables: NonNegativeInt
    kernel_stacks: NonNegativeInt

    @computed_field  # type: ignore[prop-decorator]
    @property
    def used(self) -> int:
        """Everything that programs cannot have: reserved and allocated."""
        return (self.reserved or 0) + self.allocated


class ModelledSide(Record):
    """Modelled events and cycles of the kernel or the user in an interval.

    Attributes:
        events: counts, by the plugin's names (docs/pmu.md).
        cycles: by what the pipeline waited for; their sum is all cycles.
    """

    events: dict[str, NonNegativeInt]
    cycles: dict[str, NonNegativeFloat]


class Modelled(Record):
    """The results of the emulated PMU, and the name of the modelled core."""

    core: str
    kernel: ModelledSide
    user: ModelledSide


class Repeats(Record):
    """String instructions with a repeat prefix in an interval; each is one instruction, however
    long.

    Attributes:
        instructions: that began.
        iterations: of all of them.
        bytes: that they stored or, without storing, read.
        cycles: that they take by the costs of a core.
        core: its name.
    """

    instructions: NonNegativeInt
    iterations: NonNegativeInt
    bytes: NonNegativeInt
    cycles: NonNegativeFloat
    core: str


class Counted(Record):
    """Counts of a core's PMU by ``perf stat`` (docs/hardware.md).

    Attributes:
        counters: name of the core's counters.
        operations: of which the figures are totals: those of the case minus those of a shorter
            run, whose figures are subtracted.
        whole_program: there was no shorter run, so the figures include what surrounds the work.
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
        suite: the suite's name, such as ``mepof``.
        case: the case's name, unique in its suite.
        metric_group: G4's name of the group: ``syscall``, ``overhead``, ``pipe``, ``proc``,
            ``file``.
        operations: done in the interval.
        check: the result that the case computed, as it printed it.
        kernel_instructions: a count, as the next three; None if the device has no counter for it.
        kernel_repeats: None where they are not counted, or do not exist.
        guest_nanoseconds: time on the guest's clock.
        figures: other numbers that the case printed, such as ``p99_ns``, the 99th percentile of
            its operations' latencies on the guest's clock, or ``bytes`` that they moved.
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
    kernel_repeats: Repeats | None = None
    guest_nanoseconds: NonNegativeInt
    figures: dict[str, NonNegativeInt] = Field(default_factory=dict)
    modelled: Modelled | None = None
    counted: Counted | None = None


class Unsupported(Record):
    """A case that the image cannot run.

    Attributes:
        needs: what is missing, in the case's words, such as ``CONFIG_VETH``.
    """

    suite: str
    case: str
    needs: str


class Boot(Record):
    """The cases that one boot ran, and those that it could not run.

    Attributes:
        memory: when the last case had ended; None where the device did not read it.
    """

    seed: int
    cases: tuple[CaseMeasurement, ...]
    unsupported: tuple[Unsupported, ...] = ()
    memory: MemoryBytes | None = None

    @model_validator(mode="after")
    def _one_of_each_case(self) -> Boot:
        cases = [(c.suite, c.case) for c in self.cases]
        cases += [(c.suite, c.case) for c in self.unsupported]
        if len(set(cases)) != len(cases):
            raise ValueError(f"a case was measured twice in the boot with seed {self.seed}")
        return self


class Measurement(Checked, Record):
    """Everything that was measured on one image.

    Attributes:
        image: its name in the program.
        digest: SHA-256 of the bootable image, hexadecimal.
        booted: whether every boot reached the agent.
        self_check: ``passed``, or what failed: the kernel's own check, a case or an app.
        sections: bytes of each section of interest.
        boots: each with another seed.
        memory: before anything ran, in a boot of its own; None where the device did not read it.
    """

    image: str
    digest: str
    device: Device
    booted: bool
    self_check: str
    size_bytes: SizeBytes
    sections: dict[str, NonNegativeInt] = Field(default_factory=dict)
    boots: tuple[Boot, ...] = ()
    memory: MemoryBytes | None = None

    @model_validator(mode="after")
    def _one_boot_of_each_seed(self) -> Measurement:
        if len({boot.seed for boot in self.boots}) != len(self.boots):
            raise ValueError("two boots have the same seed")
        return self


class Evaluation(Record):
    """The file ``evaluation.json``: all images of an ``eval``, measured in turns.

    Attributes:
        images: the baseline first.
        same_build: the baseline with other seeds, as A/A control.
        relinked: the baseline in other layouts.
        precision_percent: the half-width of intervals at which measuring ends.
        ended: why there were no further boots.
    """

    images: tuple[Measurement, ...]
    same_build: Measurement | None = None
    relinked: tuple[Measurement, ...] = ()
    precision_percent: float = DEFAULT_PRECISION_PERCENT
    ended: str = ""

    @property
    def why_incomparable(self) -> str | None:
        """Why nothing can be compared with the baseline, in words; None if it can.

        The boots of its A/A control are boots of the same build.
        """
        baseline = self.images[0]
        if not baseline.sound:
            return f"{baseline.image} {baseline.how_it_failed}"
        if self.same_build is not None and not self.same_build.sound:
            return f"{control_of(baseline.image)} {self.same_build.how_it_failed}"
        return None


def read_evaluation(path: Path) -> Evaluation:
    """Read an ``evaluation.json``.

    Raises:
        InputError: it cannot be read, or is not an evaluation.
    """
    try:
        return Evaluation.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path} is not an evaluation: {first_error(error)}") from error
