"""The recording plugin, on a guest with known branches."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import NATIVE
from .test_count_plugin import ICOUNT, QEMU, boot, guest, several

pytestmark = pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed")

HIGH = 0xFFFF800000000000
BRANCHES, RANGES, SAMPLE, COUNTERS, END = 1, 2, 3, 4, 255
REPEATS, INTERRUPTIONS, LOST, TAKEN = 1, 2, 3, 6

# Any address in the low half.
LOW = -1
# The high half of `marked.S`, by the numbers of its instructions from `high` on.
KNOWN_BRANCHES = {(2, 1): 9, (9, 11): 1, (13, 15): 3, (17, 12): 2}
KNOWN_RANGES = {
    **{(0, 2): 1, (1, 2): 8, (1, 9): 1, (11, 13): 1, (12, 13): 2, (15, 17): 2},
    # Up to the stop mark.
    (15, 19): 1,
}

# The same with several CPUs, on each.
KNOWN_BRANCHES_IN_TURN = {(4, 2): 9, (11, 13): 1, (16, 18): 3, (20, 14): 2, (24, LOW): 1}
KNOWN_RANGES_IN_TURN = {
    **{(0, 4): 1, (2, 4): 8, (2, 11): 1, (13, 16): 1, (14, 16): 2, (18, 20): 2, (18, 24): 1},
}

Pairs = dict[tuple[int, int], int]


@dataclass(frozen=True)
class Trace:
    header: bytes
    records: list[tuple[int, bytes]]

    @classmethod
    def read(cls, path: Path) -> Trace:
        data = path.read_bytes()
        assert data[:8] == b"MEPOFTRC"
        records = list(records_of(data))
        assert records[-1] == (END, struct.pack("<Q", len(records) - 1))
        return cls(data[:128], records[:-1])

    def pairs(self, kind: int, numbers: dict[int, int]) -> Pairs:
        total: Counter[tuple[int, int]] = Counter()
        for one, body in self.records:
            if one == kind:
                for first, last, count in struct.iter_unpack("<QQQ", body):
                    total[numbers.get(first, LOW), numbers.get(last, LOW)] += count
        return dict(total)

    def counter(self, kind: int) -> int:
        values = [
            value
            for one, body in self.records
            if one == COUNTERS
            for key, value in struct.iter_unpack("<QQ", body)
            if key == kind
        ]
        return sum(values)


def records_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 128
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size


def record(built: Path, directory: Path, image: Path, plugin: str, *options: str) -> Trace:
    out = directory / "trace"
    done = boot(image, f"{built}/record.so,out={out}{plugin}", *options)
    assert done.returncode == 0, done.stderr
    assert list(directory.glob("*.draft")) == []
    return Trace.read(out)


def numbers_of(image: Path) -> dict[int, int]:
    """Numbers of the instructions from the label ``high`` on, by address in the high half."""
    elf = image.with_suffix(".elf")
    listing = subprocess.run(
        ["objdump", "-d", elf], check=True, capture_output=True, text=True
    ).stdout
    high = listing.partition("<high>:\n")[2]
    addresses = re.findall(r"^ +([0-9a-f]+):\t(?:[0-9a-f]{2} )+ *\t", high, re.MULTILINE)
    return {HIGH + int(address, 16): number for number, address in enumerate(addresses)}


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("options", [ICOUNT, ()], ids=["icount", "plain"])
def test_branches_and_ranges_are_exact_however_long_a_repeat_is(
    built: Path, tmp_path: Path, repeats: int, options: tuple[str, ...]
) -> None:
    image = guest(tmp_path, repeats=repeats)
    trace, numbers = record(built, tmp_path, image, "", *options), numbers_of(image)
    assert trace.pairs(BRANCHES, numbers) == KNOWN_BRANCHES
    assert trace.pairs(RANGES, numbers) == KNOWN_RANGES
    assert trace.counter(TAKEN) == 15
    assert trace.counter(INTERRUPTIONS) == 0
    assert trace.counter(LOST) == 0


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("cpus", [2, 4, 8])
def test_no_range_joins_blocks_of_two_cpus_that_take_turns(
    built: Path, tmp_path: Path, repeats: int, cpus: int
) -> None:
    image = guest(tmp_path, repeats=repeats, cpus=cpus)
    trace = record(built, tmp_path, image, ",cpus=turns", *several(cpus))
    numbers = numbers_of(image)
    branches, ranges = trace.pairs(BRANCHES, numbers), trace.pairs(RANGES, numbers)
    assert branches == {pair: count * cpus for pair, count in KNOWN_BRANCHES_IN_TURN.items()}
    assert ranges == {pair: count * cpus for pair, count in KNOWN_RANGES_IN_TURN.items()}
    assert trace.counter(TAKEN) == 16 * cpus
    assert trace.counter(INTERRUPTIONS) == 0
    assert trace.counter(LOST) == 0


def test_each_cpu_has_a_branch_stack_of_its_own(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, cpus=4)
    given = ",sample=4,depth=16,cpus=turns"
    trace, numbers = record(built, tmp_path, image, given, *several(4)), numbers_of(image)
    loop = [(16, 18), (20, 14)]
    path = [*[(4, 2)] * 9, (11, 13), *loop, *loop, (16, 18), (24, LOW)]
    stacks: dict[int, list[list[tuple[int, int]]]] = {}
    for kind, body in trace.records:
        if kind == SAMPLE:
            vcpu = struct.unpack_from("<QQII", body)[2]
            entries = [
                (numbers.get(a, LOW), numbers.get(b, LOW))
                for a, b in struct.iter_unpack("<QQ", body[24:])
            ]
            stacks.setdefault(vcpu, []).append(entries)
    newest_first = [path[:count][::-1] for count in (4, 8, 12, 16)]
    assert stacks == dict.fromkeys(range(4), newest_first)


@pytest.mark.parametrize("plugin", ["", ",sample=5,depth=4"], ids=["exact", "sampled"])
def test_one_cpu_that_takes_turns_alone_gives_the_same_trace(
    built: Path, tmp_path: Path, plugin: str
) -> None:
    image = guest(tmp_path, rounds=3)
    inline = record(built, tmp_path, image, plugin, *ICOUNT)
    assert record(built, tmp_path, image, f"{plugin},cpus=turns", *ICOUNT) == inline


def test_intervals_add_up(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=3)
    trace, numbers = record(built, tmp_path, image, "", *ICOUNT), numbers_of(image)
    thrice = {pair: count * 3 for pair, count in KNOWN_BRANCHES.items()}
    assert trace.pairs(BRANCHES, numbers) == thrice
    assert trace.counter(TAKEN) == 45


@pytest.mark.parametrize("span", ["marks", "session"])
@pytest.mark.parametrize("session", [False, True])
def test_a_span_follows_only_its_own_marks(
    built: Path, tmp_path: Path, span: str, session: bool
) -> None:
    image = guest(tmp_path, session=session)
    trace, numbers = record(built, tmp_path, image, f",span={span}", *ICOUNT), numbers_of(image)
    heeded = session == (span == "session")
    assert trace.pairs(BRANCHES, numbers) == (KNOWN_BRANCHES if heeded else {})
    assert trace.counter(TAKEN) == (15 if heeded else 0)


def test_the_whole_run_includes_what_is_outside_of_the_marks(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=2)
    trace, numbers = record(built, tmp_path, image, ",span=all", *ICOUNT), numbers_of(image)
    # After the marks: `jmp *%rax` back to the low half, and in the last round `jz done`.
    doubled = {pair: count * 2 for pair, count in KNOWN_BRANCHES.items()}
    assert trace.pairs(BRANCHES, numbers) == {**doubled, (23, LOW): 1, (21, 24): 1}


@pytest.mark.parametrize("plugin", ["", ",sample=5"])
def test_an_interval_without_stop_mark_ends_with_the_next_or_the_run(
    built: Path, tmp_path: Path, plugin: str
) -> None:
    image = guest(tmp_path, rounds=2, endless=True)
    trace, numbers = record(built, tmp_path, image, plugin, *ICOUNT), numbers_of(image)
    doubled = {pair: count * 2 for pair, count in KNOWN_BRANCHES.items()}
    known = {**doubled, (23, LOW): 1, (21, 24): 1}
    assert trace.counter(TAKEN) == sum(known.values())
    assert trace.pairs(BRANCHES, numbers) == ({} if plugin else known)


def test_branches_beyond_the_capacity_are_counted_as_lost(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=3)
    trace, numbers = record(built, tmp_path, image, ",paths=3", *ICOUNT), numbers_of(image)
    kept = trace.pairs(BRANCHES, numbers)
    assert 1 <= len(kept) <= 3 and len(trace.pairs(RANGES, numbers)) == 3
    assert all(count == 3 * KNOWN_BRANCHES[pair] for pair, count in kept.items())
    assert trace.counter(LOST) > 0
    assert sum(kept.values()) + trace.counter(LOST) == trace.counter(TAKEN) == 45


def test_blocks_are_dropped_when_there_are_many(built: Path, tmp_path: Path) -> None:
    sources = [*(NATIVE / "tcg-plugin").glob("*.c")]
    sources.remove(NATIVE / "tcg-plugin/count.c")
    plugin = ("-std=c17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-DMANY_BLOCKS=500")
    subprocess.run(["gcc", *plugin, "-o", tmp_path / "record.so", *sources], check=True, timeout=60)
    image = guest(tmp_path)
    trace, numbers = record(tmp_path, tmp_path, image, "", *ICOUNT), numbers_of(image)
    # Branches that are taken just then are not seen.
    kept = trace.pairs(BRANCHES, numbers)
    assert set(kept) <= set(KNOWN_BRANCHES)
    assert trace.counter(TAKEN) == sum(kept.values()) >= 10


def test_a_sample_has_the_last_branches_newest_first(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path)
    trace, numbers = record(built, tmp_path, image, ",sample=5,depth=4", *ICOUNT), numbers_of(image)
    stacks = []
    for kind, body in trace.records:
        if kind != SAMPLE:
            continue
        _, address, vcpu, depth = struct.unpack_from("<QQII", body)
        entries = [(numbers[a], numbers[b]) for a, b in struct.iter_unpack("<QQ", body[24:])]
        assert (vcpu, depth, numbers[address]) == (0, len(entries), entries[0][1])
        stacks.append(entries)
    assert stacks == [
        [(2, 1)] * 4,
        [(9, 11), (2, 1), (2, 1), (2, 1)],
        [(13, 15), (17, 12), (13, 15), (17, 12)],
    ]
    assert trace.counter(TAKEN) == 15


def test_the_header_says_what_was_recorded(built: Path, tmp_path: Path) -> None:
    given = f",sample=7,depth=16,text={HIGH:#x},buildid=00ff10"
    header = record(built, tmp_path, guest(tmp_path), given).header
    assert struct.unpack_from("<IIIIQIIQ", header, 8) == (1, 62, 3, 1, 7, 16, 1, HIGH)
    assert header[48:60] == b"_text".ljust(12, b"\0")
    assert header[60:] == struct.pack("<I", 3) + b"\x00\xff\x10".ljust(64, b"\0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "out=FILE is missing"),
        (",out=", "invalid argument: out="),
        (",out=x,sample=0", "invalid argument: sample=0"),
        (",out=x,sample=-1", "invalid argument: sample=-1"),
        (",out=x,sample=5,depth=1025", "invalid argument: depth=1025"),
        (",out=x,depth=4", "depth=N requires sample=PERIOD"),
        (",out=x,span=some", "invalid argument: span=some"),
        (",out=x,paths=0", "invalid argument: paths=0"),
        (",out=x,buildid=abc", "invalid argument: buildid=abc"),
        (",out=x,sampled=5", "invalid argument: sampled=5"),
        (",out=x,cpus=2", "invalid argument: cpus=2"),
        (",out=x,cpus=turns,span=all", "cpus=turns requires marks"),
        (",out=/no/such/directory/x", "/no/such/directory/x: No such file"),
    ],
)
def test_wrong_arguments_are_refused(
    built: Path, tmp_path: Path, arguments: str, message: str
) -> None:
    done = boot(guest(tmp_path), f"{built}/record.so{arguments}")
    assert done.returncode != 0
    assert f"record: {message}" in done.stderr
