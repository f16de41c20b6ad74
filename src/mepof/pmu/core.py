"""Cores: descriptions of processors as data files under ``cores/``, found by their stem.

A description gives the sizes of what the emulated PMU models of a core (docs/pmu.md), what its
events cost, and the source of each number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from mepof import arch
from mepof.described import Described, check_known
from mepof.registry import DescribedRegistry

# Limits of the plugin (native/pmu/settings.c).
_MAX_WAYS = 128
_MAX_TABLES = 8
_MAX_HISTORY = 255
_MAX_PATHS = 4
_MAX_PATH = 21

Source = Annotated[str, Field(min_length=8)]


def _power_of_two(size: int) -> int:
    if size & (size - 1):
        raise ValueError(f"{size} bytes is not a power of two")
    return size


Block = Annotated[int, Field(ge=16, le=4096), AfterValidator(_power_of_two)]


class Sourced(Described):
    """A table of numbers with their source."""

    source: Source


class Table(Sourced):
    """A cache (of lines), a TLB (of pages) or a branch target buffer (of branches).

    Attributes:
        entries: a power of two times ``ways``.
        ways: as many as entries in a fully associative table.
    """

    entries: int = Field(gt=0)
    ways: int = Field(gt=0, le=_MAX_WAYS)

    @model_validator(mode="after")
    def _sets_are_a_power_of_two(self) -> Table:
        sets, rest = divmod(self.entries, self.ways)
        if rest or sets & (sets - 1) or sets == 0:
            raise ValueError(f"{self.entries} entries / {self.ways} ways is not a power of two")
        return self

    @property
    def sets(self) -> int:
        """Number of sets."""
        return self.entries // self.ways


class OpCache(Table):
    """The micro-op cache: decoded blocks of code, by the address at which fetching entered them.

    Attributes:
        entries: each of ``pipeline.fetch_instructions`` of an aligned block of
            ``pipeline.fetch_bytes``.
        decode_bytes: size of the smaller blocks, of which one is decoded in a cycle after a miss.
        decode_instructions: decoded of such a block in a cycle.
        turn: cycles to switch to the decoders.
    """

    decode_bytes: Block
    decode_instructions: int = Field(ge=1, le=64)
    turn: int = Field(ge=0, le=1000)


def _check_rising(histories: Sequence[int], longest: int) -> None:
    if any(one >= other for one, other in pairwise([0, *histories, longest + 1])):
        raise ValueError(f"histories must increase, from at least 1 to at most {longest}")


class Indirect(Sourced):
    """The predictor of indirect branches: tables by the path to them, before the last target.

    Attributes:
        entries: of all tables together.
        history: length of the path that each table uses, in taken branches.
        path: of all taken branches; or ``caller``, where a return restores the path from before
            the call.
    """

    entries: int = Field(ge=0, le=1 << 24)
    history: tuple[int, ...] = Field(max_length=_MAX_PATHS)
    path: Literal["all", "caller"]

    @model_validator(mode="after")
    def _is_sound(self) -> Indirect:
        _check_rising(self.history, _MAX_PATH)
        if self.entries < len(self.history):
            raise ValueError(f"{self.entries} entries are too few for {len(self.history)} tables")
        return self


class Returns(Sourced):
    """The return stack."""

    depth: int = Field(ge=0, le=1024)


class Direction(Sourced):
    """The predictor of directions: a table of counters, and tagged tables by history.

    Attributes:
        base: entries of the table by address, a power of two.
        table: entries of each tagged table, a power of two from 256 on.
        history: length of the history that each tagged table uses, in branches, rising.
    """

    base: int = Field(ge=2, le=1 << 24)
    table: int = Field(ge=256, le=1 << 24)
    history: tuple[int, ...] = Field(max_length=_MAX_TABLES)

    @model_validator(mode="after")
    def _is_sound(self) -> Direction:
        for size in (self.base, self.table):
            if size & (size - 1):
                raise ValueError(f"{size} entries are not a power of two")
        _check_rising(self.history, _MAX_HISTORY)
        return self


class Prefetch(Sourced):
    """Lines that a miss brings in beside its own.

    Attributes:
        code: the next lines of the code.
        data: the next lines after the second miss in a row.
    """

    code: int = Field(ge=0, le=16)
    data: int = Field(ge=0, le=32)


class Pipeline(Sourced):
    """What fetches and executes instructions.

    Attributes:
        cpu: LLVM's name of the core, whose scheduling model gives its width, its reorder buffer,
            its execution units, and the latency of each instruction.
        width: instructions dispatched in a cycle, where LLVM has only the model of another core;
            0 for LLVM's.
        window: entries of the reorder buffer, likewise.
        fetch_bytes: size of the aligned blocks of code of which one is fetched in a cycle.
        fetch_instructions: fetched of such a block in a cycle.
        fetch_free: whether instructions that take no dispatch slot, such as no-operations, do not
            count towards ``fetch_instructions``.
        fetch_split: whether an instruction that ends in the next block is fetched with both.
        fetch_ahead: maximal distance of fetching ahead of dispatching, in cycles.
        predict_ahead: maximal distance of the predictor ahead of fetching, in fetches; their
            misses are under way meanwhile.
        line_cycles: cycles between lines that arrive in L1I.
        forwarding: latency from a store's value to a load of what was stored.
        renamed_forwarding: likewise, to a load of the same four or eight bytes into a general
            register, if it was as many stores ago as the last time; absent where the core does
            not predict that.
        blocked_forwarding: likewise, to a load of more than was stored; ``forwarding`` if absent.
        repeat_start: cycles of a REP string instruction before its first line.
        repeat_line: cycles for each line that it reads or writes.
    """

    cpu: str = Field(pattern=r"^[a-z0-9.-]+$")
    width: int = Field(default=0, ge=0, le=16)
    window: int = Field(default=0, ge=0, le=1024)
    fetch_bytes: Block
    fetch_instructions: int = Field(ge=1, le=64)
    fetch_split: bool = False
    fetch_free: bool = False
    fetch_ahead: int = Field(ge=0, le=1000)
    predict_ahead: int = Field(ge=1, le=256)
    line_cycles: int = Field(ge=0, le=1000)
    forwarding: int = Field(ge=0, le=1000)
    renamed_forwarding: int | None = Field(default=None, ge=0, le=1000)
    blocked_forwarding: int | None = Field(default=None, ge=0, le=1000)
    repeat_start: int = Field(default=0, ge=0, le=1000)
    repeat_line: int = Field(ge=0, le=1000)


class Cost(Sourced):
    """The latency or penalty of one event, in cycles.

    The model of the instruction window decides how much of it other work hides.
    """

    cycles: int = Field(ge=0, le=1000)


class Costs(Described):
    """The costs of events.

    Attributes:
        path_target: of predicting a target by the path.
        call_target: of predicting the target of a call; absent where it costs nothing.
        return_target: likewise, of a return.
        system_call: of entering the kernel by a system call; absent, as the next four, where no
            source is known, and then 0.
        system_return: of leaving it by SYSRET.
        interrupt: of entering the kernel's handler by an interrupt or exception.
        interrupt_return: of IRET or ERET.
        swap_base: of SWAPGS.
    """

    l1i_miss: Cost
    l1d_miss: Cost
    l2_code_miss: Cost
    l2_data_miss: Cost
    itlb_miss: Cost
    dtlb_miss: Cost
    itlb_walk: Cost
    dtlb_walk: Cost
    misprediction: Cost
    btb_miss: Cost
    l1_btb_miss: Cost | None = None
    path_target: Cost
    call_target: Cost | None = None
    return_target: Cost | None = None
    system_call: Cost | None = None
    system_return: Cost | None = None
    interrupt: Cost | None = None
    interrupt_return: Cost | None = None
    swap_base: Cost | None = None


class Core(Described):
    """A processor core.

    Attributes:
        title: its name in running text.
        arch: G4's name of the architecture that it executes.
        emulated: QEMU's name of the processor, whose features decide which code the kernel runs.
        line: bytes of a cache line.
        l2_dtlb: absent where ``l2_itlb`` serves both code and data.
        op_cache: absent where the decoders deliver as much.
        l1_btb: a smaller branch target buffer, with which prediction is as fast as fetching;
            absent where ``btb`` itself is.
    """

    title: str
    arch: str
    emulated: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    line: Block
    l1i: Table
    l1d: Table
    l2: Table
    itlb: Table
    dtlb: Table
    l2_itlb: Table
    l2_dtlb: Table | None = None
    op_cache: OpCache | None = None
    btb: Table
    l1_btb: Table | None = None
    indirect: Indirect
    returns: Returns
    direction: Direction
    prefetch: Prefetch
    pipeline: Pipeline
    cost: Costs

    @field_validator("arch")
    @classmethod
    def _arch_has_pages(cls, name: str) -> str:
        known = [each.name for each in arch.records() if each.pages is not None]
        return check_known(name, known, "architecture")

    def repeat_cycles(self, repeats: Mapping[str, int]) -> float:
        """Cycles of REP string instructions: their start, and the lines that they access.

        Args:
            repeats: ``instructions``, and ``bytes`` that they store or, without storing, read.
        """
        lines = repeats["bytes"] / self.line
        return repeats["instructions"] * self.pipeline.repeat_start + lines * (
            self.pipeline.repeat_line
        )

    @model_validator(mode="after")
    def _has_both_or_neither(self) -> Core:
        if (self.l1_btb is None) != (self.cost.l1_btb_miss is None):
            raise ValueError("`l1_btb` and `cost.l1_btb_miss` require each other")
        return self


CORES = DescribedRegistry(Path(__file__).with_name("cores"), Core, "core", or_path=True)


def core_names() -> tuple[str, ...]:
    """Every core, sorted."""
    return CORES.names()


def load_core(name: str) -> Core:
    """The core of that name, or of a file whose path ends in ``.toml``.

    Raises:
        InputError: there is none, or its file is wrong.
    """
    return CORES.get(name)


def label_of(name: str) -> str:
    """What results call a core: its name, or the title of one that the user describes, whose path
    says nothing to others."""
    return load_core(name).title if name.endswith(".toml") else name
