"""The model of a core against reference models in Python, and hand-written traces."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Sequence
from ctypes import POINTER, c_bool, c_int, c_size_t, c_uint32, c_uint64

import pytest

from .conftest import NATIVE, TableSize

PMU = NATIVE / "pmu"
EVENTS = re.findall(r"^\tEVENT\((\w+)\)", (PMU / "events.h").read_text(), re.M)
NONE, CONDITIONAL, JUMP, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN = range(7)


class DirectionSize(ctypes.Structure):
    _fields_ = (
        ("base_bits", c_uint32),
        ("table_bits", c_uint32),
        ("tables", c_uint32),
        ("history", c_uint32 * 8),
    )


class TargetsSize(ctypes.Structure):
    _fields_ = (
        ("btb", TableSize),
        ("l1_btb", TableSize),
        ("indirect_entries", c_uint32),
        ("paths", c_uint32),
        ("path_lengths", c_uint32 * 4),
        ("path_returns", c_bool),
        ("return_depth", c_uint32),
    )


class CoreSize(ctypes.Structure):
    _fields_ = (
        ("line_bits", c_uint32),
        *((name, TableSize) for name in ("l1i", "l1d", "l2", "itlb", "dtlb", "l2_itlb", "l2_dtlb")),
        ("targets", TargetsSize),
        ("direction", DirectionSize),
        ("code_prefetch", c_uint32),
        ("data_prefetch", c_uint32),
        ("latency", c_uint32 * 13),
    )


class Branch(ctypes.Structure):
    _fields_ = (
        ("transfer", c_int),
        ("address", c_uint64),
        ("next", c_uint64),
        ("target", c_uint64),
    )


def core(**changed: object) -> CoreSize:
    """A small core."""
    size = CoreSize(
        line_bits=6,
        l1i=(4, 2),
        l1d=(4, 2),
        l2=(64, 4),
        itlb=(1, 4),
        dtlb=(1, 4),
        l2_itlb=(4, 4),
        targets=TargetsSize((16, 2), (1, 4), 64, 2, (2, 8), return_depth=4),
        direction=(6, 8, 2, (4, 12)),
    )
    for name, value in changed.items():
        setattr(size, name, value)
    return size


def numbers(values: Sequence[int]) -> ctypes.Array[c_uint64]:
    return (c_uint64 * len(values))(*values)


def truths(count: int) -> ctypes.Array[c_bool]:
    return (c_bool * count)()


class Lru:
    """A set-associative table, as lists."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets: list[list[int]] = [[] for _ in range(sets)]
        self.ways = ways

    def touch(self, key: int) -> bool:
        entries = self.sets[key % len(self.sets)]
        hit = key in entries
        if hit:
            entries.remove(key)
        entries.insert(0, key)
        del entries[self.ways :]
        return hit


@pytest.mark.parametrize(("sets", "ways"), [(1, 1), (1, 5), (16, 1), (8, 4), (2, 24)])
def test_a_cache_replaces_the_least_recently_used_line(
    model: ctypes.CDLL, sets: int, ways: int
) -> None:
    drawn = random.Random(sets * ways)
    keys = [drawn.randrange(3 * sets * ways) << drawn.choice((0, 0, 3)) for _ in range(5000)]
    keys += [0, (1 << 64) - 2]
    hits = truths(len(keys))
    model.run_cache(c_uint64(sets), c_uint32(ways), numbers(keys), c_size_t(len(keys)), hits)
    reference = Lru(sets, ways)
    assert list(hits) == [reference.touch(key) for key in keys]


def test_a_cache_without_ways_always_misses(model: ctypes.CDLL) -> None:
    hits = (c_bool * 2)(True, True)
    model.run_cache(c_uint64(0), c_uint32(0), numbers([5, 5]), c_size_t(2), hits)
    assert list(hits) == [False, False]


class Tage:
    """The predictor as described in the paper, with histories as lists of bits."""

    def __init__(self, base_bits: int, table_bits: int, lengths: Sequence[int]) -> None:
        self.base_bits, self.table_bits, self.lengths = base_bits, table_bits, lengths
        self.base = [1] * (1 << base_bits)
        self.tables: list[dict[int, list[int]]] = [{} for _ in lengths]
        self.history: list[int] = []  # the newest first

    def folded(self, length: int, bits: int) -> int:
        value = 0
        for age, bit in enumerate(self.history[:length]):
            value ^= bit << age % bits
        return value

    def resolve(self, address: int, taken: bool) -> bool:
        hashed = address ^ address >> 2
        indices, tags = [], []
        for number, length in enumerate(self.lengths):
            at = hashed ^ hashed >> (self.table_bits - number)
            odd = self.folded(length, self.table_bits | 1)
            at ^= odd ^ odd >> self.table_bits
            indices.append(at & (1 << self.table_bits) - 1)
            tag = hashed ^ self.folded(length, 11) ^ self.folded(length, 10) << 1
            tags.append(tag & 0x7FF)
        entries = [
            entry if (entry := table.get(at)) is not None and entry[0] == tag else None
            for table, at, tag in zip(self.tables, indices, tags, strict=True)
        ]
        found = [number for number, entry in enumerate(entries) if entry is not None]
        at_base = hashed & (1 << self.base_bits) - 1
        others = self.base[at_base] >= 2
        if len(found) > 1:
            second = entries[found[-2]]
            assert second is not None
            others = second[1] >= 0
        predicted, first = others, others
        if found:
            entry = entries[found[-1]]
            assert entry is not None
            first = entry[1] >= 0
            predicted = others if entry[2] == 0 and entry[1] in (0, -1) else first
            if first != others:
                entry[2] = min(3, entry[2] + 1) if first == taken else max(0, entry[2] - 1)
            entry[1] = min(3, entry[1] + 1) if taken else max(-4, entry[1] - 1)
        else:
            step = self.base[at_base] + (1 if taken else -1)
            self.base[at_base] = min(3, max(0, step))
        if first != taken:
            self.allocate(found[-1] if found else -1, indices, tags, taken)
        self.history.insert(0, int(taken))
        return predicted == taken

    def allocate(self, above: int, indices: list[int], tags: list[int], taken: bool) -> None:
        longer = range(above + 1, len(self.lengths))
        for number in longer:
            if self.tables[number].get(indices[number], [0, 0, 0])[2] == 0:
                self.tables[number][indices[number]] = [tags[number], 0 if taken else -1, 0]
                return
        for number in longer:
            self.tables[number][indices[number]][2] -= 1


def branches_of(seed: int, count: int) -> tuple[list[int], list[bool]]:
    """Loops, correlated, biased and random branches, at various addresses."""
    drawn = random.Random(seed)
    addresses, taken = [], []
    before = [False] * 8
    for number in range(count):
        kind = drawn.randrange(4)
        address = 0xFFFFFFFF81000000 + kind * 0x40 + drawn.randrange(40) * 0x1234
        does = (number % 7 > 0, before[3] ^ before[1], drawn.random() < 0.95, drawn.random() < 0.5)
        addresses.append(address)
        taken.append(does[kind])
        before = [does[kind], *before[:-1]]
    return addresses, taken


@pytest.mark.parametrize("lengths", [(), (6,), (3, 9), (4, 9, 21, 50, 130, 255)])
def test_directions_are_predicted_as_described(
    model: ctypes.CDLL, lengths: tuple[int, ...]
) -> None:
    addresses, taken = branches_of(len(lengths), 6000)
    right = truths(len(taken))
    size = DirectionSize(7, 8, len(lengths), (c_uint32 * 8)(*lengths))
    model.run_direction(
        ctypes.byref(size),
        numbers(addresses),
        (c_bool * len(taken))(*taken),
        c_size_t(len(taken)),
        right,
    )
    reference = Tage(7, 8, lengths)
    assert list(right) == [
        reference.resolve(address, does) for address, does in zip(addresses, taken, strict=True)
    ]


@pytest.mark.parametrize("table_bits", [10, 11])
def test_a_sequence_is_learned_beside_a_branch_that_is_always_taken(
    model: ctypes.CDLL, table_bits: int
) -> None:
    drawn = random.Random(1)
    sequence = [drawn.random() < 0.5 for _ in range(300)]
    taken = [does for one in sequence * 60 for does in (one, True)]
    right = truths(len(taken))
    size = DirectionSize(7, table_bits, 3, (c_uint32 * 8)(16, 40, 100))
    given = (numbers([0x1000, 0x1040] * (len(taken) // 2)), (c_bool * len(taken))(*taken))
    model.run_direction(ctypes.byref(size), *given, c_size_t(len(taken)), right)
    assert list(right)[-1200:].count(False) < 60


def test_a_longer_history_learns_a_loop_that_a_counter_cannot(model: ctypes.CDLL) -> None:
    taken = [number % 6 > 0 for number in range(3000)]
    wrong = {}
    for lengths in ((), (8,)):
        right = truths(len(taken))
        size = DirectionSize(7, 8, len(lengths), (c_uint32 * 8)(*lengths))
        given = (numbers([0x1000] * len(taken)), (c_bool * len(taken))(*taken))
        model.run_direction(ctypes.byref(size), *given, c_size_t(len(taken)), right)
        wrong[lengths] = list(right)[1000:].count(False)
    assert wrong[()] > 300
    assert wrong[(8,)] == 0


@pytest.mark.parametrize("depth", [0, 1, 3, 16])
def test_returns_come_from_a_ring_that_wraps_around(model: ctypes.CDLL, depth: int) -> None:
    drawn = random.Random(depth)
    calls, returns, expected = [], [], []
    ring, top = [0] * max(depth, 1), 0
    for _ in range(2000):
        if drawn.random() < 0.5:
            calls.append(drawn.randrange(1, 1000))
            returns.append(0)
            top = (top + 1) % len(ring)
            ring[top] = calls[-1]
            expected.append(False)
            continue
        calls.append(0)
        # Sometimes to another address than the call's; after an underflow, to a stale entry.
        leads = ring[top] if ring[top] and drawn.random() < 0.8 else drawn.randrange(1000, 2000)
        returns.append(leads)
        expected.append(depth > 0 and leads == ring[top])
        top = (top - 1) % len(ring)
    right = truths(len(calls))
    model.run_returns(
        c_uint32(depth), numbers(calls), numbers(returns), c_size_t(len(calls)), right
    )
    assert list(right) == expected


def test_a_path_distinguishes_the_targets_of_an_indirect_branch(model: ctypes.CDLL) -> None:
    leads = [0x1000, 0x2000, 0x3000, 0x2000] * 100
    wrong = {}
    for entries in (0, 1024):
        right = truths(len(leads))
        model.run_indirect(
            c_uint32(entries),
            numbers([0x500] * len(leads)),
            numbers(leads),
            c_size_t(len(leads)),
            right,
        )
        wrong[entries] = list(right)[100:].count(False)
    assert wrong == {0: 300, 1024: 0}


Trace = Sequence[tuple[int, int, int, int, int]]


def predicted(
    model: ctypes.CDLL, trace: Trace, **changed: object
) -> tuple[list[bool], list[int], dict[str, int]]:
    """Taken or not, cycles late, and the events, of (transfer, address, next, target, actual
    target)."""
    given = (Branch * len(trace))(*(Branch(*one[:4]) for one in trace))
    to, taken = numbers([one[4] for one in trace]), truths(len(trace))
    late = numbers([0] * len(trace))
    events = (c_uint64 * len(EVENTS))()
    size = core(**changed)
    model.run_branches(ctypes.byref(size), given, to, c_size_t(len(trace)), taken, late, events)
    return list(taken), list(late), {n: e for n, e in zip(EVENTS, events, strict=True) if e}


def branches(
    model: ctypes.CDLL, trace: Trace, **changed: object
) -> tuple[list[bool], dict[str, int]]:
    """Taken or not, and the events."""
    taken, _, events = predicted(model, trace, **changed)
    return taken, events


# Latencies of the larger buffer, the path, a call and a return.
LATE = (c_uint32 * 13)(*[0] * 9, 2, 5, 3, 1)


def test_a_branch_is_missed_once_and_then_known(model: ctypes.CDLL) -> None:
    jump = (JUMP, 0x100, 0x105, 0x900, 0x900)
    assert branches(model, [jump] * 5) == ([True] * 5, {"btb_misses": 1})


def test_a_miss_in_the_small_buffer_is_predicted_late(model: ctypes.CDLL) -> None:
    jumps = [(JUMP, 0x100 + n, 0x105 + n, 0x900, 0x900) for n in range(0, 0x60, 0x20)]
    # The small buffer holds the last four branches; earlier ones hit in the large one.
    _, late, _ = predicted(model, [*jumps, *jumps], latency=LATE)
    assert late == [0] * 6
    crowd = [(JUMP, 0x100 + n, 0x105 + n, 0x900, 0x900) for n in range(0, 0x200, 0x20)]
    _, late, events = predicted(model, [*crowd, *crowd], latency=LATE)
    assert late == [0] * 16 + [2] * 16
    assert events == {"btb_misses": 16}


def test_a_target_by_path_is_predicted_late(model: ctypes.CDLL) -> None:

    def late(leads: Sequence[int]) -> list[int]:
        trace = [(INDIRECT_JUMP, 0x100, 0x102, 0, to) for to in leads]
        return predicted(model, trace * 40, latency=LATE)[1][-4:]

    assert late([0x900] * 4) == [0] * 4
    assert late([0x900, 0xA00, 0xB00, 0xC00]) == [5] * 4


def test_a_return_to_its_call_is_predicted_and_another_is_not(model: ctypes.CDLL) -> None:
    call = (CALL, 0x100, 0x105, 0x900, 0x900)
    back, elsewhere = ((RETURN, 0x950, 0x951, 0, to) for to in (0x105, 0x777))
    taken, events = branches(model, [call, back, call, elsewhere])
    assert taken == [True] * 4
    assert events == {"btb_misses": 1, "return_mispredictions": 1}


def test_an_indirect_call_is_returned_from(model: ctypes.CDLL) -> None:
    call = (INDIRECT_CALL, 0x100, 0x102, 0, 0x900)
    back = (RETURN, 0x950, 0x951, 0, 0x102)
    _, events = branches(model, [call, back] * 3)
    assert "return_mispredictions" not in events
    assert events["indirect_mispredictions"] == 1


def test_a_single_target_is_predicted_by_address(model: ctypes.CDLL) -> None:
    ways = [(JUMP, 0x400 + 0x20 * n, 0x405 + 0x20 * n, 0x100, 0x100) for n in range(8)]
    jump = (INDIRECT_JUMP, 0x100, 0x102, 0, 0x900)
    _, late, events = predicted(model, [b for way in ways for b in (way, jump)], latency=LATE)
    assert events["indirect_mispredictions"] == 1
    assert not any(late)


def test_calls_and_returns_are_predicted_late(model: ctypes.CDLL) -> None:
    call = (CALL, 0x100, 0x105, 0x900, 0x900)
    back = (RETURN, 0x950, 0x951, 0, 0x105)
    _, late, _ = predicted(model, [call, back] * 2, latency=LATE)
    assert late == [3, 1] * 2


@pytest.mark.parametrize("path_returns", [False, True])
def test_a_called_function_is_in_the_path_unless_a_return_restores_it(
    model: ctypes.CDLL, path_returns: bool
) -> None:
    # A call in a loop alternates between two targets.
    turn = [
        [
            (INDIRECT_CALL, 0x100, 0x102, 0, to),
            (RETURN, to + 4, to + 5, 0, 0x102),
            (JUMP, 0x102, 0x104, 0x100, 0x100),
        ]
        for to in (0x900, 0xA00)
    ]
    targets = TargetsSize((16, 2), (1, 4), 64, 2, (2, 8), path_returns, 4)
    _, events = branches(model, [b for t in turn * 50 for b in t], targets=targets)
    wrong = events["indirect_mispredictions"]
    assert wrong > 50 if path_returns else wrong < 10


def test_a_conditional_branch_is_taken_unless_it_falls_through(model: ctypes.CDLL) -> None:
    over, through = ((CONDITIONAL, 0x100, 0x102, 0x180, to) for to in (0x180, 0x102))
    taken, events = branches(model, [through, through, over, through])
    assert taken == [False, False, True, False]
    assert events["conditional_branches"] == 4
    assert events["direction_mispredictions"] == 1


def test_a_branch_hidden_by_an_interrupt_counts_as_taken_and_trains_nothing(
    model: ctypes.CDLL,
) -> None:
    trace = [(kind, 0x100, 0x102, 0x180, 0xFFFF) for kind in (CONDITIONAL, JUMP, CALL)]
    assert branches(model, trace) == ([True] * 3, {})
    assert branches(model, [(NONE, 0x100, 0x102, 0, 0xFFFF)]) == ([False], {})


def lines(model: ctypes.CDLL, what: str, trace: Sequence[int], **changed: object) -> dict[str, int]:
    events = (c_uint64 * len(EVENTS))()
    size = core(**changed)
    run = getattr(model, f"run_{what}")
    run.argtypes = (POINTER(CoreSize), POINTER(c_uint64), c_size_t, POINTER(c_uint64))
    run(ctypes.byref(size), numbers(trace), len(trace), events)
    return {name: count for name, count in zip(EVENTS, events, strict=True) if count}


def test_code_of_one_line_is_accessed_once(model: ctypes.CDLL) -> None:
    assert lines(model, "code", [7, 7, 7, 8, 7]) == {
        "l1i_accesses": 3,
        "l1i_misses": 2,
        "l2_code_misses": 2,
    }


def test_a_line_evicted_from_l1_is_still_in_l2(model: ctypes.CDLL) -> None:
    # Three lines of one set of two ways.
    assert lines(model, "code", [0, 4, 8] * 10) == {
        "l1i_accesses": 30,
        "l1i_misses": 30,
        "l2_code_misses": 3,
    }


def test_the_next_line_of_code_is_prefetched_within_its_page(model: ctypes.CDLL) -> None:
    assert lines(model, "code", [0, 1], code_prefetch=1)["l1i_misses"] == 1
    assert lines(model, "code", [63, 64], code_prefetch=1)["l1i_misses"] == 2


@pytest.mark.parametrize("step", [1, -1])
def test_a_stream_of_data_is_prefetched(model: ctypes.CDLL, step: int) -> None:
    trace = [1000 * 64 + (at if step > 0 else 63 - at) for at in range(64)]
    plain = lines(model, "data", trace)
    assert (plain["l1d_misses"], plain["l2_data_misses"]) == (64, 64)
    # Two misses to detect it, then one of five.
    ahead = lines(model, "data", trace, data_prefetch=4)
    assert ahead["l1d_misses"] == 2 + 62 // 5
    assert (plain["dtlb_misses"], ahead["dtlb_misses"]) == (1, 1)


def test_scattered_lines_are_not_a_stream(model: ctypes.CDLL) -> None:
    trace = random.Random(1).sample(range(0, 100_000, 2), 500)
    assert lines(model, "data", trace, data_prefetch=4)["l1d_misses"] == 500


def test_pages_that_miss_the_first_level_are_in_the_second(model: ctypes.CDLL) -> None:
    # Five pages in turn in four entries: each misses, and is walked once.
    trace = [page * 64 for page in range(5)] * 10
    events = lines(model, "data", trace)
    assert (events["dtlb_misses"], events["dtlb_walks"]) == (50, 5)
    apart = lines(model, "data", trace, l2_dtlb=TableSize(1, 2))
    assert (apart["dtlb_misses"], apart["dtlb_walks"]) == (50, 50)
