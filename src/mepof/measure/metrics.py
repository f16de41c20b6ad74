"""Metrics: costs per operation, each computed from the measurement of a case."""

from __future__ import annotations

from math import exp, fsum, log
from typing import Literal

from mepof.measure.measurement import CaseMeasurement, Device, ModelledSide, Record

Kind = Literal["counted", "modelled", "timed"]


class Metric(Record):
    """A cost per operation; lower is better.

    Attributes:
        name: its name in ``report.json``.
        title: its name in running text.
        unit: of its cost per operation.
        field: the field of CaseMeasurement that has its total.
        control: it must not move between images, because the program under test is the same.
    """

    name: str
    title: str
    unit: str
    field: str = ""
    control: bool = False

    @property
    def of_kernel(self) -> bool:
        """Whether it counts kernel mode only."""
        return self.name.startswith("kernel_")

    @property
    def may_be_none(self) -> bool:
        """Whether it can be 0 in a valid interval, which then has no ratio."""
        return False

    def of_user(self) -> Metric:
        """The same in user space, of a metric of the kernel."""
        return self.model_copy(
            update={
                "name": self.name.replace("kernel_", "user_"),
                "title": self.title.replace("Kernel ", "User "),
                "field": self.field.replace("kernel_", "user_"),
            }
        )

    @property
    def of_time(self) -> bool:
        """Whether it is a time, which is less and not fewer."""
        return self.unit.startswith("ns/")

    @property
    def printed(self) -> bool:
        """Whether it comes from figures that only some cases print."""
        return False

    @property
    def explains(self) -> bool:
        """Whether it only explains a difference: events, which are often too rare to wait for, and
        what cases print. Booting does not wait for its verdicts, which are a family of their own.
        """
        return self.may_be_none or self.printed

    def cost(self, case: CaseMeasurement) -> float | None:
        """Cost of one operation; None if the device could not measure it."""
        if case.counted is None or self.name == GUEST_TIME:
            return self.emulated_cost(case)
        total = case.counted.figures.get(self.name)
        return None if total is None else total / case.counted.operations

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Cost of one operation without a PMU's counts."""
        total: int | None = getattr(case, self.field)
        return None if total is None else total / case.operations

    def kind(self, device: Device) -> Kind:
        """Whether the figure is counted, timed or modelled.

        Under icount the guest's clock advances by one nanosecond with every instruction, so
        its time is modelled.
        """
        if not self.of_time:
            return "counted"
        return "modelled" if device.mode.startswith("icount") else "timed"


class Work(Metric):
    """Instructions, and the cycles of REP string instructions, each of which is one instruction
    however long. So an instruction counts as a cycle."""

    def kind(self, device: Device) -> Kind:
        """Modelled: the costs are those of a core."""
        return "modelled"

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """The work of one operation; None where no REP was counted."""
        if case.kernel_repeats is None or case.kernel_instructions is None:
            return None
        return (case.kernel_instructions + case.kernel_repeats.cycles) / case.operations


class RepeatCount(Metric):
    """What REP string instructions do; ``field`` is one of :class:`Repeats`."""

    @property
    def may_be_none(self) -> bool:
        """Work may need no such instruction."""
        return True

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """The count of one operation; None where no REP was counted."""
        if case.kernel_repeats is None:
            return None
        total: int = getattr(case.kernel_repeats, self.field)
        return total / case.operations


class CoreMetric(Metric):
    """A cost on one core, of the kernel or of user space: modelled under emulation, otherwise
    counted by the PMU."""

    def side_of(self, case: CaseMeasurement) -> ModelledSide | None:
        """What was modelled of its side; None without a model."""
        if case.modelled is None:
            return None
        return case.modelled.kernel if self.of_kernel else case.modelled.user

    def kind(self, device: Device) -> Kind:
        """Modelled under emulation, otherwise counted."""
        return "modelled" if device.accel == EMULATED else "counted"


class CoreCycles(CoreMetric):
    """The cycles of its side."""

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Modelled cycles of one operation; None without a model."""
        found = self.side_of(case)
        return None if found is None else sum(found.cycles.values()) / case.operations


class CoreEvents(CoreMetric):
    """Events of its side in the core's caches, TLBs and predictors.

    Attributes:
        events: those that are summed, by the emulated PMU's names.
    """

    events: tuple[str, ...]

    @property
    def may_be_none(self) -> bool:
        """Short work may cause no such event."""
        return True

    def emulated_cost(self, case: CaseMeasurement) -> float | None:
        """Events of one operation; None without a model."""
        found = self.side_of(case)
        if found is None:
            return None
        return sum(found.events[name] for name in self.events) / case.operations


class PrintedMetric(Metric):
    """A cost by the figures that a case printed, on the guest's clock."""

    @property
    def printed(self) -> bool:
        """Always."""
        return True


class Latency(PrintedMetric):
    """The latency of operations: the geometric mean of some percentiles and the mean.

    Xu and Shen, "Optimizing the Linux Kernel using AutoFDO & Propeller", judge tcp_rr by the
    geometric mean of P1, P50, P99 and mean.

    Attributes:
        figures: by the names that cases print.
    """

    figures: tuple[str, ...]

    def cost(self, case: CaseMeasurement) -> float | None:
        """The latency of one operation; None if the case did not print all figures."""
        values = [case.figures.get(name, 0) for name in self.figures]
        return exp(fsum(map(log, values)) / len(values)) if all(values) else None


class TimePerByte(PrintedMetric):
    """The inverse of throughput, so that lower is better here too.

    Its improvement, baseline / value - 1, is that of the throughput.
    """

    def cost(self, case: CaseMeasurement) -> float | None:
        """The time of one byte; None if the case did not print how many it moved."""
        moved = case.figures.get("bytes", 0)
        return case.guest_nanoseconds / moved if moved and case.guest_nanoseconds else None


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
    Work(name="kernel_work", title="Kernel work", unit="instructions + cycles/operation"),
    RepeatCount(
        name="kernel_repeat_iterations",
        title="Kernel iterations of REP",
        unit="iterations/operation",
        field="iterations",
    ),
    RepeatCount(
        name="kernel_repeat_bytes",
        title="Kernel bytes of REP",
        unit="bytes/operation",
        field="bytes",
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
    Latency(
        name="latency",
        title="Latency",
        unit="ns/operation",
        figures=("p1_ns", "p50_ns", "p99_ns", "mean_ns"),
    ),
    TimePerByte(name="time_per_byte", title="Time per byte", unit="ns/byte"),
    Metric(name=GUEST_TIME, title="Guest time", unit="ns/operation", field="guest_nanoseconds"),
)
