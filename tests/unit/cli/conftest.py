"""A user at a shell, and a small program that Clang made, with records and profiles of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from writers.perf_script import Entry, mapping, sample
from writers.shell import Shell

from .profiles import CLANG, SOURCE, converted


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "a.c").write_text(SOURCE)
    flags = ("-O1", "-g", "-fdebug-info-for-profiling", "-fno-pie", "-no-pie", "-Wl,--build-id")
    subprocess.run([CLANG, *flags, "a.c", "-o", "a"], cwd=directory, check=True)
    return directory / "a"


@pytest.fixture(scope="module")
def loop(program: Path) -> tuple[int, int]:
    """The backward jump of the loop in ``hot``, and where it goes."""
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True
    ).stdout
    body = shown[shown.index("<hot>:") :]
    found = re.search(r"^ *([0-9a-f]+):\s+jne? +([0-9a-f]+)", body, re.M)
    assert found is not None
    return int(found[1], 16), int(found[2], 16)


@pytest.fixture(scope="module")
def record(program: Path, loop: tuple[int, int]) -> Path:
    """Samples of the loop, a millisecond apart."""
    path = program.with_name("perf.txt")
    entries = [Entry(*loop)] * 16
    start = loop[1] & ~0xFFF
    lines = [mapping(start, 0x1000, str(program), 7, 7, offset=start & 0xFFFF)]
    lines += [
        sample(loop[1], entries, f"a 7 [000] {number / 1000:12.6f}:") for number in range(2000)
    ]
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def profile(program: Path, record: Path) -> Path:
    path = program.with_name("a.afdo")
    converted(program, record, "autofdo", path)
    return path
