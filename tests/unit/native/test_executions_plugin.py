"""The plugin that says which code is executed, on a guest with known counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.pmu.locations import RawLocations, read_raw

from . import test_aarch64
from .conftest import NATIVE
from .test_count_plugin import ICOUNT, KNOWN, KNOWN_IN_TURN, QEMU, boot, guest, several
from .test_record_plugin import numbers_of

pytestmark = pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed")


# The block of the stop mark counts as whole, with two instructions after it. The marks of programs
# are in user code.
KERNEL = KNOWN["kernel_instructions"] + 2


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("executions")
    words = ["make", "-s", "-C", str(NATIVE / "executions"), f"OUT={out}"]
    subprocess.run(words, check=True, timeout=120)
    return out / "executions.so"


def executed(plugin: Path, directory: Path, image: Path, *options: str) -> RawLocations:
    out = directory / "places.jsonl"
    done = boot(image, f"{plugin},out={out}", *options)
    assert done.returncode == 0, done.stderr
    return read_raw(out)


def instructions(raw: RawLocations) -> list[int]:
    return [sum(site[2] * site[3] for site in line.sites) for line in raw.intervals]


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
def test_executed_blocks_hold_every_kernel_instruction_however_long_a_repeat_is(
    plugin: Path, tmp_path: Path, repeats: int
) -> None:
    raw = executed(plugin, tmp_path, guest(tmp_path, repeats=repeats), *ICOUNT)
    assert instructions(raw) == [KERNEL]


def test_a_block_has_its_addresses_and_executions(plugin: Path, tmp_path: Path) -> None:
    image = guest(tmp_path)
    (interval,) = executed(plugin, tmp_path, image, *ICOUNT).intervals
    numbers = numbers_of(image)
    loops = {numbers[site[0]]: site[2:] for site in interval.sites}
    # The loop after its first iteration, and what jumps to the long REP.
    assert loops[1] == (2, 9)
    assert loops[12] == (2, 2)
    assert all(start < end for start, end, *_ in interval.sites)


def test_every_interval_is_a_line(plugin: Path, tmp_path: Path) -> None:
    raw = executed(plugin, tmp_path, guest(tmp_path, rounds=3), *ICOUNT)
    assert instructions(raw) == [KERNEL] * 3


def test_the_code_of_all_cpus_counts(plugin: Path, tmp_path: Path) -> None:
    # Without a repeat, which a turn may interrupt.
    raw = executed(plugin, tmp_path, guest(tmp_path, cpus=4, repeats=0), *several(4))
    assert instructions(raw) == [4 * KNOWN_IN_TURN["kernel_instructions"]]


@test_aarch64.NEEDED
def test_the_kernel_of_an_arm64_guest_is_known(plugin: Path, tmp_path: Path) -> None:
    out, image = tmp_path / "places.jsonl", test_aarch64.guest(tmp_path)
    test_aarch64.boot(image, f"{plugin},out={out}", *test_aarch64.ICOUNT)
    raw = read_raw(out)
    assert instructions(raw) == [test_aarch64.INSTRUCTIONS]
    numbers = test_aarch64.numbers_of(image)
    assert all(site[0] in numbers for site in raw.intervals[0].sites)


@pytest.mark.parametrize("given", ["", ",out=", ",out=a,cpus=turns", ",in=a"])
def test_wrong_arguments_are_refused_with_the_usage(
    plugin: Path, tmp_path: Path, given: str
) -> None:
    done = boot(guest(tmp_path), f"{plugin}{given}", *ICOUNT)
    assert done.returncode != 0
    assert "usage: -plugin executions.so,out=FILE" in done.stderr


def test_a_file_that_cannot_be_written_is_named(plugin: Path, tmp_path: Path) -> None:
    done = boot(guest(tmp_path), f"{plugin},out={tmp_path}/none/places", *ICOUNT)
    assert done.returncode != 0
    assert f"cannot write {tmp_path}/none/places: No such file" in done.stderr
