"""The versions of compilers that were tried, with a mepof made of a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@dataclass(frozen=True)
class Chosen:
    """What a word for a toolchain selects."""

    family: str
    version: str


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, with results of its own and compilers that are not there."""
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.delitem(sys.modules, "compilers", raising=False)
    import compilers

    found = {"gcc:/opt/gcc": Chosen("gcc", "11.3.0"), "clang-9": Chosen("clang", "9.0.1")}
    monkeypatch.setattr(compilers, "select", found.__getitem__)
    monkeypatch.setattr(compilers, "RESULT", tmp_path / "tried")
    monkeypatch.setattr(compilers, "OUT", tmp_path / "out")
    monkeypatch.setattr(compilers, "MEPOF", tmp_path / "mepof")
    yield compilers
    sys.modules.pop("compilers", None)


def report(value: float, booted: bool) -> str:
    rows = [
        {"image": "opt", "metric": metric, "case": "syscall", "value": value, "baseline": 200.0}
        for metric in ("kernel_instructions", "kernel_taken_branches")
    ]
    images = [
        {"name": "plain", "booted": True, "size_bytes": {"text": 1000}},
        {"name": "opt", "booted": booted, "size_bytes": {"text": 1050}},
    ]
    provenance = {"kernel": "Linux 6.12.1", "tools": {"gcc": "gcc (GCC) 11.3.0"}}
    return json.dumps(
        {"baseline": "plain", "cases": rows, "images": images, "provenance": provenance}
    )


def run(compilers: ModuleType, monkeypatch: pytest.MonkeyPatch, mepof: str, *words: str) -> int:
    """Run the script with a mepof that does this; its status."""
    program: Path = compilers.MEPOF
    program.write_text(f"#!/bin/sh\necho run >> {program.parent}/called\n{mepof}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["compilers.py", *words])
    try:
        compilers.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def working(value: float, booted: bool = True) -> str:
    return f"cat > $4/report.json <<'END'\n{report(value, booted)}\nEND"


@pytest.mark.parametrize(
    ("value", "booted", "status", "row"),
    [
        (150, True, 0, "| Linux 6.12.1 | booted | 25.00 | 25.00 | +5.0 |"),
        (210, True, 1, "| Linux 6.12.1 | booted | -5.00 | -5.00 | +5.0 |"),
        (150, False, 1, "| Linux 6.12.1 | does not boot | 25.00 | 25.00 | +5.0 |"),
    ],
)
def test_a_compiler_is_tried_once_and_kept_by_its_version(
    compilers: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: float,
    booted: bool,
    status: int,
    row: str,
) -> None:
    words = ("gcc:/opt/gcc", "gcc-pgo")
    for _ in range(2):
        assert run(compilers, monkeypatch, working(value, booted), *words) == status
        assert (tmp_path / "called").read_text().split() == ["run"]
    assert f"| `gcc-11` | `gcc-pgo` {row}\n" in (tmp_path / "tried.md").read_text()
    (written,) = (tmp_path / "out").rglob("program.g4")
    assert "set toolchain gcc:/opt/gcc.\n" in written.read_text()
    run(compilers, monkeypatch, working(value, booted), "--again", *words)
    assert (tmp_path / "called").read_text().split() == ["run"] * 2


def test_a_compiler_that_fails_has_its_reason_and_does_not_end_the_next(
    compilers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = "echo 'mepof: clang failed' >&2; exit 1"
    assert run(compilers, monkeypatch, failing, "clang-9", "pgo", "cspgo") == 1
    assert run(compilers, monkeypatch, working(100), "gcc:/opt/gcc", "gcc-pgo") == 0
    lines = (tmp_path / "tried.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| `clang-9`", "`cspgo`"],
        ["| `clang-9`", "`pgo`"],
        ["| `gcc-11`", "`gcc-pgo`"],
    ]
    assert rows[0].endswith("| failed: clang failed | | | |")


def test_what_was_interrupted_has_no_result(
    compilers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(compilers, monkeypatch, "exit 130", "clang-9", "pgo") == 130
    assert not (tmp_path / "tried.json").exists()
