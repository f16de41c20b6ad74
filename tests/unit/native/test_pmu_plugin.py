"""The plugin of the emulated PMU, on guests with known instructions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mepof.pmu.core import core_names, load_core
from mepof.pmu.events import CYCLES
from mepof.pmu.settings import settings_of

from . import test_aarch64 as arm64
from . import test_count_plugin as count_plugin
from .test_count_plugin import (
    ICOUNT,
    KNOWN,
    KNOWN_IN_TURN,
    NO_REPEATS,
    QEMU,
    STRINGS,
    boot,
    guest,
    known,
    several,
)

HIGH = 0xFFFF800000000000

pytestmark = pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed")
needs_arm64 = pytest.mark.skipif(
    shutil.which(arm64.QEMU) is None or shutil.which(arm64.GCC) is None,
    reason="nothing for arm64 is installed",
)


def arguments(core: str = "zen4") -> str:
    return ",".join(settings_of(load_core(core)))


def run(
    pmu: Path, directory: Path, image: Path, *options: str, given: str = ""
) -> list[dict[str, Any]]:
    out = directory / "counts.json"
    done = boot(image, f"{pmu},out={out},{arguments()}{given}", *options)
    assert done.returncode == 0, done.stderr
    counted = json.loads(out.read_text(encoding="utf-8"))
    assert counted["version"] == 1
    assert list(directory.glob("*.draft")) == []
    intervals: list[dict[str, Any]] = counted["intervals"]
    return intervals


def counts(interval: dict[str, Any]) -> dict[str, int]:
    return {name: interval[name] for name in (*KNOWN, *NO_REPEATS)}


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("options", [ICOUNT, ()], ids=["icount", "plain"])
def test_it_counts_what_the_counting_plugin_counts(
    pmu: Path, tmp_path: Path, repeats: int, options: tuple[str, ...]
) -> None:
    (interval,) = run(pmu, tmp_path, guest(tmp_path, repeats=repeats), *options)
    assert counts(interval) == known(repeats)


@pytest.mark.parametrize(("string", "unit"), STRINGS)
def test_it_counts_iterations_and_bytes_of_repeats(
    pmu: Path, tmp_path: Path, string: str, unit: int
) -> None:
    image = guest(tmp_path, repeats=100, string=string)
    (inline,) = run(pmu, tmp_path, image, *ICOUNT)
    repeated = {"instructions": 4, "iterations": 400, "bytes": 100 + 3 * 100 * unit}
    assert counts(inline) == {**KNOWN, **NO_REPEATS, "kernel_repeats": repeated}
    assert run(pmu, tmp_path, image, *ICOUNT, given=",cpus=turns") == [inline]


def test_a_repeat_takes_its_start(pmu: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, repeats=100)
    (free,) = run(pmu, tmp_path, image, *ICOUNT, given=",repeat-start=0")
    (slow,) = run(pmu, tmp_path, image, *ICOUNT, given=",repeat-start=35")
    kernel = [cycles(one, "kernel") for one in (free, slow)]
    # Each waits for what was executed before it and delays what follows.
    assert 4 * 35 - 10 <= kernel[1] - kernel[0] <= 4 * 35


def cycles(interval: dict[str, Any], side: str) -> int:
    return sum(interval[f"{side}_events"][name] for name in CYCLES)


def test_entering_and_leaving_the_kernel_take_cycles_of_kernel_code(
    pmu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest that changes the base twice, and jumps to the kernel once."""
    source = tmp_path / "swaps.S"
    text = count_plugin.SOURCE.read_text()
    assert text.count("\nhigh:\n") == 1
    source.write_text(text.replace("\nhigh:\n", "\nhigh:\tswapgs\n\tnop\n\tswapgs\n"))
    monkeypatch.setattr(count_plugin, "SOURCE", source)
    image = guest(tmp_path)
    (free,) = run(pmu, tmp_path, image, *ICOUNT)
    (paid,) = run(pmu, tmp_path, image, *ICOUNT, given=",swap-base=100,interrupt=700")
    unused = ",system-call=900,system-return=900,interrupt-return=900"
    assert run(pmu, tmp_path, image, *ICOUNT, given=unused) == [free]
    assert cycles(paid, "kernel") - cycles(free, "kernel") == pytest.approx(2 * 100 + 700, abs=60)
    assert cycles(paid, "user") == pytest.approx(cycles(free, "user"), abs=20)
    assert counts(paid) == counts(free)


def test_every_interval_starts_with_an_empty_core(pmu: Path, tmp_path: Path) -> None:
    intervals = run(pmu, tmp_path, guest(tmp_path, rounds=3), *ICOUNT)
    assert len(intervals) == 3
    assert intervals[0] == intervals[1] == intervals[2]


@pytest.mark.parametrize(
    ("behind", "intervals"),
    [
        ("mark 0x4d500001\n jmp 1f\n nop\n1: nop\n mark 0x4d500002", 2),
        # Nothing is between the second pair of marks.
        ("mark 0x4d500001\n mark 0x4d500002", 1),
    ],
)
def test_a_mark_that_closely_follows_another_counts(
    pmu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str, intervals: int
) -> None:
    source = tmp_path / "close.S"
    stop = "mark\t0x4d500002 + SESSION + ENDLESS"
    assert stop in count_plugin.SOURCE.read_text()
    source.write_text(count_plugin.SOURCE.read_text().replace(stop, f"{stop}\n {behind}\n#"))
    monkeypatch.setattr(count_plugin, "SOURCE", source)
    first, *others = run(pmu, tmp_path, guest(tmp_path), *ICOUNT)
    assert counts(first) == known()
    assert len(others) == intervals - 1
    assert all(0 < other["kernel_instructions"] < 5 for other in others)


def test_one_cpu_that_takes_turns_alone_has_the_same_events(pmu: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=2)
    inline = run(pmu, tmp_path, image, *ICOUNT)
    assert run(pmu, tmp_path, image, *ICOUNT, given=",cpus=turns") == inline


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("cpus", [2, 4, 8])
def test_each_cpu_that_takes_turns_has_a_core_of_its_own(
    pmu: Path, tmp_path: Path, repeats: int, cpus: int
) -> None:
    image = guest(tmp_path, repeats=repeats, cpus=cpus)
    (interval,) = run(pmu, tmp_path, image, *several(cpus), given=",cpus=turns")
    assert {name: interval[name] for name in KNOWN_IN_TURN} == {
        name: times * cpus for name, times in KNOWN_IN_TURN.items()
    }
    # Each starts with empty caches, TLBs and predictors, and keeps what it learns.
    known = {"l1i_misses": 2, "itlb_walks": 1, "op_cache_misses": 8, "conditional_branches": 14}
    known |= {"btb_misses": 2, "indirect_mispredictions": 1, "direction_mispredictions": 4}
    kernel = interval["kernel_events"]
    assert {name: kernel[name] for name in known} == {
        name: times * cpus for name, times in known.items()
    }
    if repeats == 100:
        # Two lines read, two written, and the stack, which the first CPU has used before.
        assert kernel["l1d_misses"] == 5 * cpus - 1


def test_the_agents_marks_do_not_count(pmu: Path, tmp_path: Path) -> None:
    assert run(pmu, tmp_path, guest(tmp_path, session=True)) == []


def test_events_of_a_known_guest(pmu: Path, tmp_path: Path) -> None:
    """See ``marked.S``: its loop of 1000, a call and its return, and three loops above."""
    (interval,) = run(pmu, tmp_path, guest(tmp_path, repeats=100), *ICOUNT)
    user, kernel = interval["user_events"], interval["kernel_events"]
    # The return address is stored and loaded; there are no other accesses.
    assert (user["loads"], user["stores"]) == (1, 1)
    assert user["conditional_branches"] == 1000
    # The counter learns at the first; the end of a loop of 1000 is not predictable.
    assert user["direction_mispredictions"] == 2
    assert (user["return_mispredictions"], user["btb_misses"]) == (0, 1)
    # 100 bytes are two lines, stored three times; the line that REP touched last counts once.
    assert (kernel["loads"], kernel["stores"]) == (2, 2 + 3 * 2)
    assert kernel["conditional_branches"] == 10 + 1 + 3
    # Its loop has two instructions per iteration, one of which depends on itself.
    cycles = {name: user[name] for name in CYCLES}
    assert 1000 <= sum(cycles.values()) < 1300
    assert cycles["misprediction_cycles"] > 10
    # The text of each half is one page, of 4 KiB in the low half and 2 MiB in the high one.
    assert (user["itlb_misses"], kernel["itlb_misses"]) == (1, 1)


def test_the_whole_run_counts_without_marks(pmu: Path, tmp_path: Path) -> None:
    (interval,) = run(pmu, tmp_path, guest(tmp_path), *ICOUNT, given=",span=all")
    assert interval["user_instructions"] > KNOWN["user_instructions"]
    assert interval["kernel_instructions"] > KNOWN["kernel_instructions"]


def test_events_by_location_add_up_to_the_counts(pmu: Path, tmp_path: Path) -> None:
    where = tmp_path / "locations"
    intervals = run(
        pmu, tmp_path, guest(tmp_path, rounds=2), *ICOUNT, given=f",where={where},slice=1000"
    )
    head, *lines = (json.loads(line) for line in where.read_text().splitlines())
    assert len(lines) == 2
    assert head["events"][0] == "taken_branches"
    for interval, line in zip(intervals, lines, strict=True):
        totals = [sum(column) for column in zip(*(s[4:] for s in line["sites"]), strict=True)]
        events = dict(zip(head["events"], totals, strict=True))
        assert events["taken_branches"] == interval["kernel_taken_branches"]
        names = ("l1d_misses", "direction_mispredictions", "btb_misses", "itlb_misses", *CYCLES)
        for name in names:
            assert events[name] == interval["kernel_events"][name]
        assert all(HIGH <= start < end for start, end, *_ in line["sites"])
        executed = sum(size * times for _, _, size, times, *_ in line["sites"])
        # The block of the stop mark has two more instructions, which are not executed.
        assert executed == interval["kernel_instructions"] + 2
        assert sum(n for row in line["slices"] for _, n in row) == executed
        pages = {page for row in line["slices"] for page, _ in row}
        assert pages == {start >> 12 for start, *_ in line["sites"]}


@pytest.mark.parametrize(
    "core", [name for name in core_names() if load_core(name).arch == "x86-64"]
)
def test_every_core_can_be_modelled(pmu: Path, tmp_path: Path, core: str) -> None:
    out = tmp_path / "counts.json"
    done = boot(guest(tmp_path), f"{pmu},out={out},{arguments(core)}", *ICOUNT)
    assert done.returncode == 0, done.stderr
    (interval,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    assert counts(interval) == known()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "out=FILE is missing"),
        (",out=/no/such/directory/x,cpu=znver4", "cannot write /no/such/directory/x: No such file"),
        (",out=/dev/null", "cpu=NAME is missing"),
        (",out=/dev/null,cpu=zen5", "cannot model the core zen5: LLVM has no"),
        (",out=/dev/null,core=zen4", "invalid argument: core=zen4"),
        (",out=/dev/null,l1i=63:8", "invalid argument: l1i=63:8"),
        (",out=/dev/null,l1i=64:4096", "invalid argument: l1i=64:4096"),
        (",out=/dev/null,l1i=64", "invalid argument: l1i=64"),
        (",out=/dev/null,line=60", "invalid argument: line=60"),
        (",out=/dev/null,returns=-1", "invalid argument: returns=-1"),
        (",out=/dev/null,direction=10:10:9:9", "invalid argument: direction=10:10:9:9"),
        (",out=/dev/null,direction=10:10:256", "invalid argument: direction=10:10:256"),
        (",out=/dev/null,indirect=64:9:9", "invalid argument: indirect=64:9:9"),
        (",out=/dev/null,indirect=64:22", "invalid argument: indirect=64:22"),
        (",out=/dev/null,path=none", "invalid argument: path=none"),
        (",out=/dev/null,interrupt=1001", "invalid argument: interrupt=1001"),
        (",out=/dev/null,system-call=-1", "invalid argument: system-call=-1"),
        (",out=/dev/null,span=session", "invalid argument: span=session"),
        (",out=/dev/null,cpu=znver4,cpus=4", "invalid argument: cpus=4"),
        (",out=/dev/null,cpu=znver4,cpus=turns,span=all", "cpus=turns requires marks"),
        (",out=/dev/null,slice=99999999999999999999", "invalid argument: slice=9999"),
    ],
)
def test_wrong_arguments_are_refused(pmu: Path, tmp_path: Path, given: str, message: str) -> None:
    done = boot(guest(tmp_path), f"{pmu}{given}")
    assert done.returncode != 0
    assert f"pmu: {message}" in done.stderr


@needs_arm64
@pytest.mark.parametrize(
    ("core", "cpus", "options"),
    [
        ("cortex-a76", 2, ()),
        ("cortex-a76", 2, arm64.ICOUNT),
        *((name, 1, ()) for name in core_names() if load_core(name).arch == "arm64"),
    ],
)
def test_counts_of_arm64_are_exact(
    pmu: Path, tmp_path: Path, core: str, cpus: int, options: tuple[str, ...]
) -> None:
    out = tmp_path / "counts.json"
    turns = ",cpus=turns" if options else ""
    plugin = f"{pmu},out={out},{arguments(core)}{turns}"
    arm64.boot(arm64.guest(tmp_path, cpus=cpus), plugin, *options, cpus=cpus)
    (counted,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    assert counted["kernel_instructions"] == 45 * cpus
    assert counted["kernel_taken_branches"] == 19 * cpus
    if cpus == 1:
        assert (counted["user_instructions"], counted["user_taken_branches"]) == (2009, 1002)


@needs_arm64
def test_an_exception_of_arm64_takes_its_entry_and_its_return(pmu: Path, tmp_path: Path) -> None:
    """``brk``, and the jump from the low half to the high one."""
    out = tmp_path / "counts.json"
    elf = arm64.guest(tmp_path)
    found = []
    for given in ("", ",interrupt=300,interrupt-return=100"):
        arm64.boot(elf, f"{pmu},out={out},{arguments('cortex-a76')}{given}", *arm64.ICOUNT)
        (interval,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
        found.append(cycles(interval, "kernel"))
    assert found[1] - found[0] == pytest.approx(2 * 300 + 100, abs=60)


# Guests that map both halves of the address space by one entry of 1 GiB.

BACKEND = (
    "-object",
    "memory-backend-memfd,id=memory,size=64M",
    "-machine",
    "memory-backend=memory",
)


def events(out: Path, side: str) -> dict[str, int]:
    (interval,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    found: dict[str, int] = interval[f"{side}_events"]
    return found


def test_pages_of_an_x86_64_guest(pmu: Path, tmp_path: Path) -> None:
    """The kernel's code of ``marked.S`` copies 70,000 bytes within the low half."""
    out = tmp_path / "counts.json"
    plugin = f"{pmu},out={out},{arguments()}"
    image = guest(tmp_path, repeats=70_000)
    assert boot(image, plugin).returncode == 0
    assert events(out, "kernel")["dtlb_misses"] > 2 * 70_000 // 4096
    assert events(out, "kernel")["unknown_pages"] > 2 * 70_000 // 4096
    # The stack and the code.
    assert events(out, "user")["unknown_pages"] == 2
    done = boot(image, plugin, *BACKEND)
    assert done.returncode == 0, done.stderr
    assert events(out, "user")["dtlb_misses"] + events(out, "kernel")["dtlb_misses"] == 1
    assert [events(out, side)["unknown_pages"] for side in ("user", "kernel")] == [0, 0]


@needs_arm64
def test_pages_of_an_arm64_guest(pmu: Path, tmp_path: Path) -> None:
    out = tmp_path / "counts.json"
    plugin = f"{pmu},out={out},{arguments('cortex-a76')}"
    elf = arm64.guest(tmp_path)
    arm64.boot(elf, plugin)
    assert events(out, "user")["unknown_pages"] > 0
    arm64.boot(elf, plugin, *BACKEND)
    assert events(out, "user")["dtlb_misses"] == 1
    assert events(out, "user")["unknown_pages"] == 0
