"""Both plugins on an arm64 guest with known branches, on one and two CPUs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from .test_record_plugin import BRANCHES, INTERRUPTIONS, LOST, LOW, RANGES, TAKEN, Pairs, Trace

QEMU = "qemu-system-aarch64"
GCC = "aarch64-linux-gnu-gcc"
SOURCE = Path(__file__).with_name("marked_aarch64.S")
ICOUNT = ("-icount", "shift=0,sleep=off")
LINKED, HIGH = 0x40200000, 0xFFFFFF8000000000
# Instructions are numbered from `high` on; the exception handler begins at this number.
HANDLER = 100
# Of the high half.
INSTRUCTIONS = 45
KNOWN_BRANCHES = {
    **{(2, 1): 9, (3, 5): 1, (6, 8): 1, (10, 12): 1, (13, 15): 1, (15, 14): 1, (14, 16): 1},
    **{(17, 19): 1, (20, 15): 1, (15, 21): 1, (25, LOW): 1},
}
KNOWN_RANGES = {
    **{(0, 2): 1, (1, 2): 8, (1, 3): 1, (5, 6): 1, (8, 10): 1, (12, 13): 1, (15, 15): 2},
    **{(14, 14): 1, (16, 17): 1, (19, 20): 1, (21, 23): 1, (24, 25): 1},
    (HANDLER, HANDLER + 3): 1,
}

NEEDED = pytest.mark.skipif(
    None in (shutil.which(QEMU), shutil.which(GCC)), reason=f"{QEMU} or {GCC} is not installed"
)
pytestmark = NEEDED


def guest(directory: Path, *, cpus: int = 1, session: bool = False) -> Path:
    elf = directory / "marked.elf"
    link = ("-nostdlib", "-static", f"-Wl,-Ttext={LINKED:#x}", "-Wl,--build-id=none")
    values = {"ROUNDS": 1, "SESSION": 2 * session, "CPUS": cpus}
    defined = [f"-Wa,--defsym,{name}={value}" for name, value in values.items()]
    subprocess.run([GCC, *link, *defined, "-o", elf, SOURCE], check=True, timeout=30)
    return elf


def boot(elf: Path, plugin: str, *options: str, cpus: int = 1) -> None:
    machine = ("-machine", "virt", "-cpu", "max", "-accel", "tcg", "-m", "64", "-smp", str(cpus))
    quiet = ("-nodefaults", "-no-reboot", "-display", "none")
    done = subprocess.run(
        [QEMU, *machine, *quiet, "-kernel", elf, "-plugin", plugin, *options],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def record(
    built: Path, directory: Path, elf: Path, plugin: str = "", *options: str, cpus: int = 1
) -> Trace:
    out = directory / "trace"
    boot(elf, f"{built}/record.so,out={out}{plugin}", *options, cpus=cpus)
    return Trace.read(out)


def numbers_of(elf: Path) -> dict[int, int]:
    """Numbers of the instructions in the high half, by address."""
    listing = subprocess.run(["nm", elf], check=True, capture_output=True, text=True).stdout
    symbols = {name: int(value, 16) for value, _, name in map(str.split, listing.splitlines())}
    high, handler = HIGH + symbols["high"], HIGH + symbols["vectors"] + 0x200
    numbers = {high + 4 * number: number for number in range(26)}
    return numbers | {handler + 4 * number: HANDLER + number for number in range(4)}


def times(pairs: Pairs, factor: int) -> Pairs:
    return {pair: count * factor for pair, count in pairs.items()}


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("session", [False, True])
def test_branches_and_ranges_are_exact(
    built: Path, tmp_path: Path, cpus: int, session: bool
) -> None:
    elf = guest(tmp_path, cpus=cpus, session=session)
    span = ",span=session" if session else ""
    trace, numbers = record(built, tmp_path, elf, span, cpus=cpus), numbers_of(elf)
    assert trace.pairs(BRANCHES, numbers) == times(KNOWN_BRANCHES, cpus)
    assert trace.pairs(RANGES, numbers) == times(KNOWN_RANGES, cpus)
    assert trace.counter(TAKEN) == 19 * cpus
    assert trace.counter(INTERRUPTIONS) == cpus
    assert trace.counter(LOST) == 0
    # e_machine of arm64, and the number of CPUs.
    assert (trace.header[12], trace.header[20]) == (183, cpus)


@pytest.mark.parametrize("cpus", [1, 2])
def test_no_range_joins_blocks_of_two_cpus_that_take_turns(
    built: Path, tmp_path: Path, cpus: int
) -> None:
    elf = guest(tmp_path, cpus=cpus)
    trace = record(built, tmp_path, elf, ",cpus=turns", *ICOUNT, cpus=cpus)
    numbers = numbers_of(elf)
    assert trace.pairs(BRANCHES, numbers) == times(KNOWN_BRANCHES, cpus)
    assert trace.pairs(RANGES, numbers) == times(KNOWN_RANGES, cpus)


@pytest.mark.parametrize("cpus", [1, 2])
def test_counts_of_cpus_that_take_turns_are_exact(built: Path, tmp_path: Path, cpus: int) -> None:
    out = tmp_path / "counts.json"
    plugin = f"{built}/count.so,out={out},cpus=turns"
    boot(guest(tmp_path, cpus=cpus), plugin, *ICOUNT, cpus=cpus)
    (counted,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    assert counted["kernel_instructions"] == INSTRUCTIONS * cpus
    assert counted["kernel_taken_branches"] == 19 * cpus


@pytest.mark.parametrize("cpus", [1, 2])
def test_counts_are_exact(built: Path, tmp_path: Path, cpus: int) -> None:
    out = tmp_path / "counts.json"
    boot(guest(tmp_path, cpus=cpus), f"{built}/count.so,out={out}", cpus=cpus)
    (counted,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    assert counted["kernel_instructions"] == INSTRUCTIONS * cpus
    assert counted["kernel_taken_branches"] == 19 * cpus
    if cpus == 1:
        assert (counted["user_instructions"], counted["user_taken_branches"]) == (2009, 1002)
