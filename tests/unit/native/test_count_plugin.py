"""The counting plugin, on a guest with exactly known counts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

QEMU = "qemu-system-x86_64"
SOURCE = Path(__file__).with_name("marked.S")
ICOUNT = ("-icount", "shift=0,sleep=off")


def several(cpus: int) -> tuple[str, ...]:
    """So many CPUs that take turns, which also end because of the machine's timer: every few
    thousand instructions of a microsecond each."""
    return ("-icount", "shift=10,sleep=off", "-smp", str(cpus))


pytestmark = pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed")


def guest(
    directory: Path,
    *,
    repeats: int = 100,
    rounds: int = 1,
    session: bool = False,
    endless: bool = False,
    close: bool = False,
    cpus: int = 1,
    string: str = "stosb",
) -> Path:
    """The guest of ``marked.S``: length of its REP instructions, number of intervals, whether
    they are between the agent's marks rather than the benchmark's, have no end, or follow one
    another at once, the number of CPUs that run its high half, and the string instruction that
    its last loop repeats."""
    elf, image = directory / "marked.elf", directory / "marked.bin"
    link = ("-nostdlib", "-static", "-Wl,-Ttext=0x100000", "-Wl,--build-id=none")
    values = {"REPEATS": repeats, "ROUNDS": rounds, "SESSION": 2 * session}
    values |= {"ENDLESS": 16 * endless, "CLOSE": int(close), "CPUS": cpus}
    defined = [f"-Wa,--defsym,{name}={value}" for name, value in values.items()]
    source = directory / "marked.S"
    source.write_text(SOURCE.read_text().replace("8:	rep stosb", f"8:	rep {string}"))
    subprocess.run(["gcc", *link, *defined, "-o", elf, source], check=True, timeout=30)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", elf, image], check=True, timeout=30)
    return image


def boot(image: Path, plugin: str, *options: str) -> subprocess.CompletedProcess[str]:
    machine = ("-machine", "pc", "-cpu", "max", "-accel", "tcg", "-m", "64", "-vga", "none")
    quiet = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none")
    return subprocess.run(
        [QEMU, *machine, *quiet, "-kernel", image, "-plugin", plugin, *options],
        capture_output=True,
        text=True,
        timeout=60,
    )


def count(
    built: Path, directory: Path, image: Path, *options: str, more: str = ""
) -> list[dict[str, Any]]:
    out = directory / "counts.json"
    done = boot(image, f"{built}/count.so,out={out}{more}", *options)
    assert done.returncode == 0, done.stderr
    counted = json.loads(out.read_text(encoding="utf-8"))
    assert counted["version"] == 1
    assert list(directory.glob("*.draft")) == []
    intervals: list[dict[str, Any]] = counted["intervals"]
    return intervals


KNOWN = {
    "kernel_instructions": 46,
    "user_instructions": 2005,
    "kernel_taken_branches": 15,
    "user_taken_branches": 1002,
}
NO_REPEATS = {
    f"{side}_repeats": {"instructions": 0, "iterations": 0, "bytes": 0}
    for side in ("kernel", "user")
}


def known(repeats: int = 100) -> dict[str, Any]:
    """What counts when each of four REP instructions has so many iterations of a byte."""
    repeated = {"instructions": 4, "iterations": 4 * repeats, "bytes": 4 * repeats}
    return {**KNOWN, **NO_REPEATS, "kernel_repeats": repeated}


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("options", [ICOUNT, ()], ids=["icount", "plain"])
@pytest.mark.parametrize("more", ["", ",cpus=turns"], ids=["inline", "turns"])
def test_counts_are_exact_however_long_a_repeat_is(
    built: Path, tmp_path: Path, repeats: int, options: tuple[str, ...], more: str
) -> None:
    image = guest(tmp_path, repeats=repeats)
    assert count(built, tmp_path, image, *options, more=more) == [known(repeats)]


# The string instruction, what it repeats, and the bytes of an iteration. Zeros are compared.
STRINGS = [
    ("stosb", 1),
    ("stosw", 2),
    ("stosl", 4),
    ("stosq", 8),
    ("movsq", 8),
    ("lodsw", 2),
    ("cmpsl", 4),
    ("scasb", 1),
]


@pytest.mark.parametrize(("string", "unit"), STRINGS)
@pytest.mark.parametrize("options", [ICOUNT, ()], ids=["icount", "plain"])
@pytest.mark.parametrize("more", ["", ",cpus=turns"], ids=["inline", "turns"])
def test_iterations_and_bytes_of_repeats_are_exact(
    built: Path, tmp_path: Path, string: str, unit: int, options: tuple[str, ...], more: str
) -> None:
    image = guest(tmp_path, repeats=100, string=string)
    (interval,) = count(built, tmp_path, image, *options, more=more)
    repeated = {"instructions": 4, "iterations": 400, "bytes": 100 + 3 * 100 * unit}
    assert interval == {**KNOWN, **NO_REPEATS, "kernel_repeats": repeated}


@pytest.mark.parametrize("more", ["", ",cpus=turns"], ids=["inline", "turns"])
def test_every_interval_starts_from_zero(built: Path, tmp_path: Path, more: str) -> None:
    image = guest(tmp_path, rounds=3)
    assert count(built, tmp_path, image, *ICOUNT, more=more) == [known()] * 3


# Of the high half on each of several CPUs.
KNOWN_IN_TURN = {"kernel_instructions": 62, "kernel_taken_branches": 16}


@pytest.mark.parametrize("repeats", [0, 1, 100, 70_000])
@pytest.mark.parametrize("cpus", [2, 4, 8])
def test_turns_count_exactly_whenever_they_end(
    built: Path, tmp_path: Path, repeats: int, cpus: int
) -> None:
    image = guest(tmp_path, repeats=repeats, cpus=cpus)
    (interval,) = count(built, tmp_path, image, *several(cpus), more=",cpus=turns")
    assert {name: interval[name] for name in KNOWN_IN_TURN} == {
        name: times * cpus for name, times in KNOWN_IN_TURN.items()
    }
    of_all = {"instructions": 4, "iterations": 4 * repeats, "bytes": 4 * repeats}
    assert interval["kernel_repeats"] == {name: n * cpus for name, n in of_all.items()}


def test_turns_count_the_same_beside_cpus_that_halt(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=3)
    options = (*ICOUNT, "-smp", "4")
    assert count(built, tmp_path, image, *options, more=",cpus=turns") == [known()] * 3


def test_an_interval_starts_in_the_block_in_which_another_ends(built: Path, tmp_path: Path) -> None:
    image = guest(tmp_path, rounds=3, close=True)
    later = {**known(), "kernel_instructions": 48, "kernel_taken_branches": 16}
    assert count(built, tmp_path, image, *ICOUNT) == [known(), later, later]


def test_the_agents_marks_do_not_count(built: Path, tmp_path: Path) -> None:
    assert count(built, tmp_path, guest(tmp_path, session=True)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "out=FILE is missing"),
        (",out=", "out=FILE is missing"),
        (",ouT=x", "unknown argument: ouT=x"),
        (",cpus=2", "unknown argument: cpus=2"),
        (",out=/no/such/directory/x", "cannot write /no/such/directory/x: No such file"),
    ],
)
def test_wrong_arguments_are_refused(
    built: Path, tmp_path: Path, arguments: str, message: str
) -> None:
    done = boot(guest(tmp_path), f"{built}/count.so{arguments}")
    assert done.returncode != 0
    assert f"count: {message}" in done.stderr
