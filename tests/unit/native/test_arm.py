"""Both plugins on a 32-bit Arm guest with known branches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from .test_record_plugin import BRANCHES, INTERRUPTIONS, LOST, LOW, RANGES, TAKEN, Trace

QEMU = "qemu-system-arm"
GCC = "arm-linux-gnueabi-gcc"
SOURCE = Path(__file__).with_name("marked_arm.S")
LINKED, HIGH = 0x40200000, 0x80000000
# Instructions are numbered from `high` on; the exception handler begins at this number.
HANDLER = 100
KNOWN_BRANCHES = {
    **{(2, 1): 9, (5, 7): 1, (9, 11): 1, (11, 10): 1, (10, 12): 1, (13, 15): 1, (17, 19): 1},
    **{(21, 23): 1, (27, LOW): 1},
}
KNOWN_RANGES = {
    **{(0, 2): 1, (1, 2): 8, (1, 5): 1, (7, 9): 1, (11, 11): 1, (10, 10): 1, (12, 13): 1},
    **{(15, 17): 1, (19, 21): 1, (23, 24): 1, (25, 27): 1, (HANDLER, HANDLER + 2): 1},
}

pytestmark = [
    pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed"),
    pytest.mark.skipif(shutil.which(GCC) is None, reason=f"{GCC} is not installed"),
]


def guest(directory: Path, *, session: bool = False) -> Path:
    elf = directory / "marked.elf"
    link = ("-nostdlib", "-static", f"-Wl,-Ttext={LINKED:#x}", "-Wl,--build-id=none")
    values = {"ROUNDS": 1, "SESSION": 2 * session}
    defined = [f"-Wa,--defsym,{name}={value}" for name, value in values.items()]
    subprocess.run([GCC, *link, *defined, "-o", elf, SOURCE], check=True, timeout=30)
    return elf


def boot(elf: Path, plugin: str) -> None:
    machine = ("-machine", "virt", "-cpu", "cortex-a15", "-accel", "tcg", "-m", "64")
    quiet = ("-nodefaults", "-no-reboot", "-display", "none")
    done = subprocess.run(
        [QEMU, *machine, *quiet, "-kernel", elf, "-plugin", plugin],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def numbers_of(elf: Path) -> dict[int, int]:
    """Numbers of the instructions in the kernel's half, by address."""
    listing = subprocess.run(["nm", elf], check=True, capture_output=True, text=True).stdout
    symbols = {name: int(value, 16) for value, _, name in map(str.split, listing.splitlines())}
    high, handler = HIGH + symbols["high"], HIGH + symbols["vectors"] + 8
    numbers = {high + 4 * number: number for number in range(28)}
    return numbers | {handler + 4 * number: HANDLER + number for number in range(3)}


@pytest.mark.parametrize("session", [False, True])
def test_branches_and_ranges_are_exact(built: Path, tmp_path: Path, session: bool) -> None:
    elf, out = guest(tmp_path, session=session), tmp_path / "trace"
    boot(elf, f"{built}/record.so,out={out}{',span=session' if session else ''}")
    trace, numbers = Trace.read(out), numbers_of(elf)
    assert trace.pairs(BRANCHES, numbers) == KNOWN_BRANCHES
    assert trace.pairs(RANGES, numbers) == KNOWN_RANGES
    assert trace.counter(TAKEN) == 17
    assert trace.counter(INTERRUPTIONS) == 1
    assert trace.counter(LOST) == 0
    # e_machine of Arm, and the number of CPUs.
    assert (trace.header[12], trace.header[20]) == (40, 1)


def test_counts_are_exact(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "counts.json"
    boot(guest(tmp_path), f"{built}/count.so,out={out}")
    (counted,) = json.loads(out.read_text(encoding="utf-8"))["intervals"]
    assert (counted["kernel_instructions"], counted["kernel_taken_branches"]) == (45, 17)
    assert (counted["user_instructions"], counted["user_taken_branches"]) == (2006, 1002)
