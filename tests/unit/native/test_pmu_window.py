"""When a pipeline's window executes instructions with known needs."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from ctypes import c_bool, c_uint8, c_uint16, c_uint32, c_uint64

import pytest

from .conftest import NATIVE, TableSize

PMU = NATIVE / "pmu"
EVENTS = re.findall(r"^\tEVENT\((\w+)\)", (PMU / "events.h").read_text(), re.M)
UNIT_KINDS = 60
NEVER_RENAMED = 2**32 - 1
TIMES = 1000
ADD, LOAD, STORE = 1, 2, 3


class Pipeline(ctypes.Structure):
    _fields_ = (
        ("width", c_uint32),
        ("window", c_uint32),
        ("unit_kinds", c_uint32),
        ("units", c_uint8 * UNIT_KINDS),
    )


class WindowSize(ctypes.Structure):
    _fields_ = (
        ("pipeline", Pipeline),
        ("line_bits", c_uint32),
        ("fetch_bits", c_uint32),
        ("fetch_operations", c_uint32),
        ("fetch_split", c_uint32),
        ("fetch_free", c_uint32),
        ("op_cache", TableSize),
        ("decode_bits", c_uint32),
        ("decode_operations", c_uint32),
        ("decode_turn", c_uint32),
        ("fetch_ahead", c_uint32),
        ("predict_ahead", c_uint32),
        ("line_cycles", c_uint32),
        ("misprediction", c_uint32),
        ("forwarding", c_uint32),
        ("renamed_forwarding", c_uint32),
        ("blocked_forwarding", c_uint32),
        ("repeat_start", c_uint32),
        ("repeat_line", c_uint32),
    )


class Needs(ctypes.Structure):
    _fields_ = tuple(
        (name, c_uint16)
        for name in (
            "reads",
            "late",
            "writes",
            "latency",
            "load_latency",
            "kind",
            "kind_cycles",
            "slots",
            "stores",
            "writer",
            "bypassed",
            "bypass_cycles",
            "shifted",
            "alone",
        )
    )


class Around(ctypes.Structure):
    _fields_ = (
        ("turned", c_bool),
        ("mispredicted", c_bool),
        *(
            (name, c_uint32)
            for name in (
                "redirected",
                "late",
                "code_line",
                "code_translating",
                "code_missing",
                "repeat_missing",
                "repeats",
            )
        ),
    )


class Access(ctypes.Structure):
    _fields_ = (
        ("address", c_uint64),
        ("missing", c_uint32),
        ("operation", c_uint16),
        ("bytes", c_uint8),
        ("is_store", c_bool),
    )


def instruction(
    reads: int = 0, writes: int = 0, latency: int = 1, kind: int = 0, **more: int
) -> Needs:
    fields = {"slots": 1, "kind_cycles": 1, **more}
    return Needs(reads=reads, writes=writes, latency=latency, kind=kind, **fields)


def load(reads: int = 0, writes: int = 0, **more: int) -> Needs:
    return instruction(reads, writes, 4, load_latency=4, **more)


def cycles(
    model: ctypes.CDLL,
    block: Sequence[Needs],
    accesses: Sequence[Access] = (),
    *,
    window: int = 64,
    predict_ahead: int = 8,
    op_cache: tuple[int, int] = (0, 0),
    fetched: int = 4096,
    split: bool = False,
    free: bool = False,
    renames: bool = True,
    **around: int,
) -> dict[str, float]:
    """Cycles of a block by cause, over many executions of it."""
    units = (c_uint8 * UNIT_KINDS)(*([4] * UNIT_KINDS))
    units[2] = 1
    size = WindowSize(
        Pipeline(4, window, UNIT_KINDS, units),
        line_bits=6,
        fetch_bits=6,
        fetch_operations=fetched,
        fetch_split=split,
        fetch_free=free,
        op_cache=op_cache,
        decode_bits=5,
        decode_operations=1,
        decode_turn=2,
        fetch_ahead=10,
        predict_ahead=predict_ahead,
        line_cycles=2,
        misprediction=13,
        forwarding=9,
        renamed_forwarding=1 if renames else NEVER_RENAMED,
        blocked_forwarding=20,
        repeat_line=3,
    )
    counted = (c_uint64 * len(EVENTS))()
    model.run_window(
        ctypes.byref(size),
        (Needs * len(block))(*block),
        c_uint32(len(block)),
        (Access * max(1, len(accesses)))(*accesses),
        c_uint32(len(accesses)),
        c_uint32(TIMES),
        ctypes.byref(Around(**around)),
        counted,
    )
    return {n: count / TIMES for n, count in zip(EVENTS, counted, strict=True) if count}


def whole(*given: object, **more: object) -> float:
    return sum(cycles(*given, **more).values())  # type: ignore[arg-type]


def test_independent_instructions_execute_at_the_width_of_dispatch(model: ctypes.CDLL) -> None:
    assert whole(model, [instruction(writes=n) for n in range(1, 9)]) == pytest.approx(2, rel=0.1)


def test_a_chain_takes_the_sum_of_its_latencies(model: ctypes.CDLL) -> None:
    chain = [instruction(1, 1, 3), instruction(1, 1, 5)]
    assert whole(model, chain) == pytest.approx(8, rel=0.01)
    beside = [*chain, *(instruction(writes=n) for n in range(2, 10))]
    assert whole(model, beside) == pytest.approx(8, rel=0.01)


def test_an_execution_unit_executes_one_operation_at_a_time(model: ctypes.CDLL) -> None:
    assert whole(model, [instruction(kind=2)] * 4) == pytest.approx(4, rel=0.01)
    assert whole(model, [instruction(kind=2, kind_cycles=7)]) == pytest.approx(7, rel=0.01)
    assert whole(model, [instruction(kind=1)] * 4) == pytest.approx(1, rel=0.1)


def test_a_waiting_instruction_does_not_delay_others(model: ctypes.CDLL) -> None:
    # The only unit is free while the chain executes.
    block = [instruction(1, 1, 20), instruction(1, 0, 1, 2), *[instruction(kind=2)] * 8]
    assert whole(model, block, window=256) == pytest.approx(20, rel=0.05)


def test_misses_overlap_unless_one_depends_on_the_other(model: ctypes.CDLL) -> None:
    missing = [Access(0x1000, 40, 0, 8, False)]
    apart = cycles(model, [load(0, 1)], missing, window=8)
    assert apart == {"data_cycles": pytest.approx(45 / 8, rel=0.05)}
    chased = cycles(model, [load(1, 1)], missing, window=8)
    assert chased == {"data_cycles": pytest.approx(44, rel=0.01)}


def test_a_full_window_waits_for_its_oldest(model: ctypes.CDLL) -> None:
    missing = [Access(0x1000, 100, 0, 8, False)]
    block = [load(0, 1), *[instruction()] * 31]
    alone = whole(model, block, missing, window=32)
    ahead = whole(model, block, missing, window=320)
    assert alone == pytest.approx(105, rel=0.05)
    assert ahead < 20


def test_a_load_does_not_wait_for_an_operand_that_is_needed_late(model: ctypes.CDLL) -> None:
    # An addition with a load: the sum waits for the previous sum, the load does not.
    accesses = [Access(0x1000, 0, 0, 8, False)]
    added = Needs(1, 4, 1, 5, 4, 0, 0, 1)
    assert whole(model, [added], accesses) == pytest.approx(1, rel=0.05)


def test_a_load_waits_for_the_store_before_it(model: ctypes.CDLL) -> None:
    def through(bytes_stored: int, bytes_loaded: int, address: int, **core: bool) -> float:
        block = [instruction(1, 0, stores=1), load(0, 1), instruction(1, 1, 2)]
        stored = Access(0x1000, 0, 0, bytes_stored, True)
        return whole(model, block, [stored, Access(address, 0, 1, bytes_loaded, False)], **core)

    assert through(8, 8, 0x1000) == pytest.approx(2 + 1, rel=0.01)
    assert through(8, 8, 0x1000, renames=False) == pytest.approx(2 + 9, rel=0.01)
    assert through(8, 2, 0x1004) == pytest.approx(2 + 9, rel=0.01)
    # More than was stored, or something else.
    assert through(4, 8, 0x1000) == pytest.approx(2 + 20, rel=0.01)
    assert through(8, 8, 0x0FFC) == pytest.approx(2 + 20, rel=0.01)
    assert through(8, 8, 0x2000) < 1
    # Neighbours of a word do not match.
    assert through(4, 4, 0x1004) < 1
    assert through(1, 1, 0x1001) < 1


def test_a_store_to_a_neighbour_does_not_hide_another(model: ctypes.CDLL) -> None:
    block = [instruction(1, 0, stores=1), instruction(stores=1), load(0, 1), instruction(1, 1, 2)]
    stored = [Access(0x1000, 0, 0, 1, True), Access(0x1001, 0, 1, 1, True)]
    found = whole(model, block, [*stored, Access(0x1000, 0, 2, 1, False)])
    assert found == pytest.approx(2 + 9, rel=0.01)


def test_what_follows_a_misprediction_waits_for_the_branch(model: ctypes.CDLL) -> None:
    block = [instruction(0, 1, 6), instruction(1)]
    found = cycles(model, block, mispredicted=True)
    assert sum(found.values()) == pytest.approx(13 + 1 + 6 + 1, rel=0.01)
    assert found["misprediction_cycles"] > 13


def test_lines_of_code_are_requested_as_far_as_the_predictor_is_ahead(
    model: ctypes.CDLL,
) -> None:
    def through(predict_ahead: int, away: int) -> float:
        found = cycles(model, [instruction()], code_missing=away, predict_ahead=predict_ahead)
        assert found == {"fetch_cycles": pytest.approx(sum(found.values()))}
        return sum(found.values())

    assert through(1, 24) == pytest.approx(24, rel=0.05)
    assert through(8, 24) == pytest.approx(24 / 8, rel=0.05)
    assert through(128, 24) == pytest.approx(2, rel=0.05)  # a line every two cycles


def test_a_late_prediction_costs_only_what_the_queue_does_not_hide(
    model: ctypes.CDLL,
) -> None:
    slow = [instruction(1, 1, 5)]
    assert whole(model, slow, late=3, code_missing=1) == pytest.approx(5, rel=0.01)
    assert whole(model, [instruction()], late=3, code_missing=1) == pytest.approx(4, rel=0.05)


def test_an_in_order_core_stalls_all_that_follows(model: ctypes.CDLL) -> None:
    # The second depends on the first; the third is independent.
    block = [load(0, 1), instruction(1, 2), instruction(0, 3)]
    hit = [Access(0x1000, 0, 0, 8, False)]
    assert whole(model, block, hit, window=0) == pytest.approx(4, rel=0.05)
    assert whole(model, block, hit) < 1


def test_a_stall_of_an_in_order_core_stalls_fetching(model: ctypes.CDLL) -> None:
    # Four instructions per line, ten cycles each: the last line cannot be fetched long before.
    block = [instruction(1, 1, 10) for _ in range(16)]
    found = {
        window: whole(model, block, window=window, predict_ahead=1, code_line=3, code_missing=100)
        for window in (0, 1024)
    }
    assert found[1024] == pytest.approx(160, rel=0.01)
    assert found[0] > 180


def test_an_instruction_waits_only_for_its_own_lines(model: ctypes.CDLL) -> None:
    slow, branch = instruction(0, 1, 20), instruction(1)
    block = [slow, *[instruction()] * 3, branch]

    def line(number: int) -> float:
        return whole(model, block, code_line=number, code_missing=24, mispredicted=True)

    # The line of the last bytes of an instruction is its own too.
    across = [slow, *[instruction()] * 2, instruction(1, shifted=8)]
    late = whole(model, across, code_line=1, code_missing=24, mispredicted=True)
    assert late == pytest.approx(line(1), abs=2)
    # Together with the slow line, and before it.
    assert line(1) == pytest.approx(24 + 13 + 2, abs=2)
    assert line(0) == pytest.approx(24 + 20 + 13 + 2, abs=2)


def test_translating_takes_no_slot_in_the_queue_of_lines(model: ctypes.CDLL) -> None:
    def through(**around: int) -> float:
        return whole(model, [instruction()], predict_ahead=128, turned=True, **around)

    assert through(code_missing=24) == pytest.approx(2, rel=0.05)
    assert through(code_translating=24) == pytest.approx(1, rel=0.05)


def test_a_taken_branch_ends_the_fetch_of_a_cycle(model: ctypes.CDLL) -> None:
    assert whole(model, [instruction()]) == pytest.approx(1 / 4, rel=0.05)
    assert whole(model, [instruction()], turned=True) == pytest.approx(1, rel=0.05)


def test_an_instruction_across_two_blocks_is_fetched_with_both(model: ctypes.CDLL) -> None:
    # Four of 16 bytes; the last one ends in the next block, and a branch goes back.
    block = [instruction(shifted=8)] * 4
    assert whole(model, block, turned=True) == pytest.approx(1, rel=0.05)
    assert whole(model, block, turned=True, split=True) == pytest.approx(2, rel=0.05)
    whole_ones = [instruction()] * 4
    assert whole(model, whole_ones, turned=True, split=True) == pytest.approx(1, rel=0.05)


def test_an_instruction_without_slots_is_fetched_for_free(model: ctypes.CDLL) -> None:
    block = [instruction(), instruction(slots=0), instruction(slots=0), instruction(slots=0)]
    assert whole(model, block, fetched=2) == pytest.approx(2, rel=0.05)
    assert whole(model, block, fetched=2, free=True) == pytest.approx(1 / 2, rel=0.05)


def test_a_miss_in_the_micro_op_cache_is_decoded(model: ctypes.CDLL) -> None:
    # Four lines of four instructions.
    block = [instruction() for _ in range(16)]
    held = cycles(model, block, op_cache=(4, 1))
    assert held.pop("op_cache_misses") == pytest.approx(4 / TIMES)
    assert sum(held.values()) == pytest.approx(4, rel=0.05)
    missed = cycles(model, block, op_cache=(2, 1))
    assert missed.pop("op_cache_misses") == 4
    assert missed == {"fetch_cycles": pytest.approx(16, rel=0.05)}


def test_switching_to_the_decoders_takes_cycles(model: ctypes.CDLL) -> None:
    # The lines 0, 2 and 4 share a set of two ways, 1 and 3 another.
    block = [instruction() for _ in range(20)]
    found = cycles(model, block, op_cache=(2, 2), turned=True)
    assert found.pop("op_cache_misses") == pytest.approx(3, rel=0.01)
    # Two hits, three that are decoded, and the switch from one to the other.
    assert sum(found.values()) == pytest.approx(2 + 3 * 4 + 2 * 2, rel=0.02)


def test_a_wrong_fetch_is_repeated(model: ctypes.CDLL) -> None:
    found = cycles(model, [instruction()], redirected=8)
    assert found == {"fetch_cycles": pytest.approx(9, rel=0.02)}


def test_a_line_of_a_rep_takes_its_time_and_part_of_its_misses(model: ctypes.CDLL) -> None:
    hit = cycles(model, [instruction()], repeats=2)
    assert sum(hit.values()) == pytest.approx(2 * 3 + 2, rel=0.01)
    missed = cycles(model, [instruction()], repeats=2, repeat_missing=40)
    assert missed["data_cycles"] == pytest.approx(2 * (3 + 10), rel=0.01)


def test_nothing_else_is_executed_while_the_kernel_is_entered_or_left(
    model: ctypes.CDLL,
) -> None:
    # The chain of six cycles would overlap otherwise.
    block = [instruction(1, 1, 6), instruction(), instruction(alone=50), instruction()]
    found = cycles(model, block)
    assert sum(found.values()) == pytest.approx(50 + 6, abs=2)
    assert found["execution_cycles"] > 50


def test_an_operand_that_is_needed_late_delays_less(model: ctypes.CDLL) -> None:
    assert whole(model, [instruction(1, 1, 4, late=3)]) == pytest.approx(1, rel=0.01)
    bypassed = {"bypassed": 7, "bypass_cycles": 3}
    assert whole(model, [instruction(1, 1, 4, writer=7, **bypassed)]) == pytest.approx(1, rel=0.01)
    assert whole(model, [instruction(1, 1, 4, writer=6, **bypassed)]) == pytest.approx(4, rel=0.01)
