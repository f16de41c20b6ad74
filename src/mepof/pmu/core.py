"""Cores: descriptions of processors as data files under ``cores/``, found by their stem.

A description says what the emulated PMU models of a core (docs/pmu.md), what its events cost,
and where each number is from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mepof import arch
from mepof.described import read_described
from mepof.errors import InputError

_DIRECTORY = Path(__file__).with_name("cores")
# What the plugin takes (native/pmu/settings.c).
_MOST_WAYS = 128
_MOST_TABLES = 8
_LONGEST_HISTORY = 255
_MOST_PATHS = 4
_LONGEST_PATH = 21

Source = Annotated[str, Field(min_length=8)]


def _power_of_two(size: int) -> int:
    if size & (size - 1):
        raise ValueError(f"{size} bytes are no power of two")
    return size


Block = Annotated[int, Field(ge=16, le=4096), AfterValidator(_power_of_two)]


class _Described(BaseModel):
    """Immutable, without unknown keys, and with the source of its numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source: Source


class Table(_Described):
    """A cache (of lines), a TLB (of pages) or a branch target buffer (of branches).

    Attributes:
        entries: a multiple of ``ways``, by a power of two.
        ways: as many as entries where it is fully associative.
    """

    entries: int = Field(gt=0)
    ways: int = Field(gt=0, le=_MOST_WAYS)

    @model_validator(mode="after")
    def _sets_are_a_power_of_two(self) -> Table:
        sets, rest = divmod(self.entries, self.ways)
        if rest or sets & (sets - 1) or sets == 0:
            raise ValueError(
                f"{self.entries} entries in {self.ways} ways make no power of two of sets"
            )
        return self

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return self.entries // self.ways


class OpCache(Table):
    """The micro-op cache: blocks of code that were decoded, by where fetching came to them.

    Attributes:
        entries: of ``pipeline.fetch_instructions`` of an aligned block of ``pipeline.fetch_bytes``.
        decode_bytes: of the smaller blocks of which one is decoded in a cycle, where it misses.
        decode_instructions: of such a block, in a cycle.
        turn: cycles that turning to the decoders takes.
    """

    decode_bytes: Block
    decode_instructions: int = Field(ge=1, le=64)
    turn: int = Field(ge=0, le=1000)


def _check_rising(histories: Sequence[int], most: int) -> None:
    if any(one >= other for one, other in pairwise([0, *histories, most + 1])):
        raise ValueError(f"histories rise, from 1 to {most}")


class Indirect(_Described):
    """The predictor of indirect branches: tables by the path to them, before the last target.

    Attributes:
        entries: of all tables together.
        history: taken branches of the path, for each table.
        path: of all taken branches, or after a return of those before the call.
    """

    entries: int = Field(ge=0, le=1 << 24)
    history: tuple[int, ...] = Field(max_length=_MOST_PATHS)
    path: Literal["all", "caller"]

    @model_validator(mode="after")
    def _is_sound(self) -> Indirect:
        _check_rising(self.history, _LONGEST_PATH)
        if self.entries < len(self.history):
            raise ValueError(f"{self.entries} entries are too few for {len(self.history)} tables")
        return self


class Returns(_Described):
    """The return stack."""

    depth: int = Field(ge=0, le=1024)


class Direction(_Described):
    """The predictor of directions: a table of counters, and tagged ones by history.

    Attributes:
        base: entries of the table by address, a power of two.
        table: entries of each tagged table, a power of two from 256 on.
        history: branches of history of each tagged table, rising.
    """

    base: int = Field(ge=2, le=1 << 24)
    table: int = Field(ge=256, le=1 << 24)
    history: tuple[int, ...] = Field(max_length=_MOST_TABLES)

    @model_validator(mode="after")
    def _is_possible(self) -> Direction:
        for size in (self.base, self.table):
            if size & (size - 1):
                raise ValueError(f"{size} entries are no power of two")
        _check_rising(self.history, _LONGEST_HISTORY)
        return self


class Prefetch(_Described):
    """Lines that a miss brings in beside its own.

    Attributes:
        code: those that follow in the code.
        data: those that follow the second miss in a row of lines.
    """

    code: int = Field(ge=0, le=16)
    data: int = Field(ge=0, le=32)


class Pipeline(_Described):
    """What executes instructions, and what feeds it.

    Attributes:
        cpu: LLVM's name of the core, whose scheduling model tells its width, its reorder buffer,
            its execution units, and the latency of each instruction.
        width: instructions dispatched in a cycle, where LLVM models another core; 0 is its width.
        window: of the reorder buffer, likewise.
        fetch_bytes: of the aligned blocks of code of which one is fetched in a cycle.
        fetch_instructions: of such a block, in a cycle.
        fetch_free: whether those that take no slot of dispatch, as no-operations do, are none of
            these.
        fetch_split: whether an instruction that ends in another block is fetched with both.
        fetch_ahead: cycles that fetching is ahead of dispatching, at most.
        predict_ahead: fetches that the predictor is ahead of fetching, at most; what these miss
            is on its way.
        line_cycles: between lines that come to L1I.
        forwarding: from a store's value to a load of what was stored.
        renamed_forwarding: likewise, to a load of the same four or eight bytes into a general
            register, if that was as many stores ago as the last time; absent where the core does
            not foresee that.
        blocked_forwarding: likewise, to a load of more than was stored; `forwarding` unless it is
            given.
        repeat_line: cycles for each line that a REP string instruction reads or writes.
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
    repeat_line: int = Field(ge=0, le=1000)


class Price(_Described):
    """What one event costs: a latency or a penalty, in cycles.

    How much of it other work covers is for the window of instructions to find out.
    """

    cycles: int = Field(ge=0, le=1000)


class Prices(BaseModel):
    """What events cost.

    Attributes:
        path_target: that predicting a target takes more which the path told.
        call_target: likewise, the target of a call; absent where that takes no longer.
        return_target: likewise, of a return.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    l1i_miss: Price
    l1d_miss: Price
    l2_code_miss: Price
    l2_data_miss: Price
    itlb_miss: Price
    dtlb_miss: Price
    itlb_walk: Price
    dtlb_walk: Price
    misprediction: Price
    btb_miss: Price
    l1_btb_miss: Price | None = None
    path_target: Price
    call_target: Price | None = None
    return_target: Price | None = None


class Core(BaseModel):
    """A processor core.

    Attributes:
        title: its name in running text.
        line: bytes of a cache line.
        l2_dtlb: absent where ``l2_itlb`` is for code and data.
        op_cache: absent where decoding delivers as much.
        l1_btb: a smaller branch target buffer, from which predicting takes no longer than the
            fetch; absent where this is so of ``btb``.
        arch: G4's name of the architecture that it executes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    arch: str
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
    price: Prices

    @model_validator(mode="after")
    def _prices_what_it_has(self) -> Core:
        if (self.l1_btb is None) != (self.price.l1_btb_miss is None):
            raise ValueError("`l1_btb` and its price go together")
        return self

    def arguments(self) -> tuple[str, ...]:
        """What tells the plugin ``pmu.so`` its sizes."""
        tables = {
            "l1i": self.l1i,
            "l1d": self.l1d,
            "l2": self.l2,
            "itlb": self.itlb,
            "dtlb": self.dtlb,
            "l2-itlb": self.l2_itlb,
            "l2-dtlb": self.l2_dtlb,
            "op-cache": self.op_cache,
            "btb": self.btb,
            "l1-btb": self.l1_btb,
        }
        pages = arch.get(self.arch).pages
        assert pages is not None  # read_core() has refused it
        # The plugin takes logarithms of two.
        text, data = (size.bit_length() - 1 for size in (pages.text, pages.data))
        direction = (
            self.direction.base.bit_length() - 1,
            self.direction.table.bit_length() - 1,
            *self.direction.history,
        )
        blocked = self.pipeline.blocked_forwarding
        pipeline = self.pipeline.model_dump(exclude={"source"}, exclude_none=True) | {
            "fetch_split": int(self.pipeline.fetch_split),
            "fetch_free": int(self.pipeline.fetch_free),
            "blocked_forwarding": self.pipeline.forwarding if blocked is None else blocked,
        }
        if (op_cache := self.op_cache) is not None:
            pipeline |= {
                "decode_bytes": op_cache.decode_bytes,
                "decode_instructions": op_cache.decode_instructions,
                "decode_turn": op_cache.turn,
            }
        return (
            f"line={self.line}",
            *(f"{name}={t.sets}:{t.ways}" for name, t in tables.items() if t is not None),
            "indirect=" + ":".join(map(str, (self.indirect.entries, *self.indirect.history))),
            f"path={self.indirect.path}",
            f"returns={self.returns.depth}",
            "direction=" + ":".join(map(str, direction)),
            f"code-prefetch={self.prefetch.code}",
            f"data-prefetch={self.prefetch.data}",
            f"kernel-text-page={text}",
            f"kernel-data-page={data}",
            *(f"{name.replace('_', '-')}={value}" for name, value in pipeline.items()),
            *(
                f"{name.replace('_', '-')}={price.cycles}"
                for name, price in self.price
                if price is not None
            ),
        )


#: Events of the plugin that are cycles, by what the pipeline waited for.
CYCLES: Mapping[str, str] = {
    "execution_cycles": "execution",
    "fetch_cycles": "fetching",
    "misprediction_cycles": "mispredictions",
    "data_cycles": "data",
}

#: What the plugin counts for kernel and user apart, beside instructions and taken branches.
EVENTS: tuple[str, ...] = (
    "conditional_branches",
    "loads",
    "stores",
    "l1i_accesses",
    "l1i_misses",
    "l1d_misses",
    "l2_code_misses",
    "l2_data_misses",
    "op_cache_misses",
    "itlb_misses",
    "dtlb_misses",
    "itlb_walks",
    "dtlb_walks",
    "return_mispredictions",
    "btb_misses",
    "indirect_mispredictions",
    "direction_mispredictions",
    *CYCLES,
)


def cycles_of(events: Mapping[str, int]) -> dict[str, float]:
    """The modelled cycles, by what they go to; their sum is the whole (docs/pmu.md).

    Args:
        events: the plugin's, by name.
    """
    return {told: float(events[name]) for name, told in CYCLES.items()}


def core_names() -> tuple[str, ...]:
    """Every core, sorted."""
    return tuple(sorted(path.stem for path in _DIRECTORY.glob("*.toml")))


def load_core(name: str) -> Core:
    """The core of that name.

    Raises:
        InputError: there is none, or its description is wrong.
    """
    path = _DIRECTORY / f"{name}.toml"
    if not path.is_file():
        raise InputError(f"unknown core `{name}`", "known: " + ", ".join(core_names()))
    return read_core(path)


def read_core(path: Path) -> Core:
    """The core that a file describes.

    Raises:
        InputError: it cannot be read, or describes no core.
    """
    core = read_described(path, Core, "core")
    known = [each.name for each in arch.records() if each.pages is not None]
    if core.arch not in known:
        raise InputError(
            f"{path} describes no core: unknown architecture `{core.arch}`",
            "known: " + ", ".join(known),
        )
    return core


@cache
def core_digest(name: str) -> str:
    """SHA-256 over everything of a core that decides what is modelled."""
    return sha256(load_core(name).model_dump_json(exclude={"title"}).encode()).hexdigest()
