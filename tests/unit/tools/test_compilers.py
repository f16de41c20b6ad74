"""The versions of compilers that were tried, with a mepof made of a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from .scripted_mepof import run, script, working


@dataclass(frozen=True)
class Chosen:
    """What a word for a toolchain selects."""

    family: str
    version: str


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, with results of its own and compilers that are not there."""
    found = {"gcc:/opt/gcc": Chosen("gcc", "11.3.0"), "clang-9": Chosen("clang", "9.0.1")}
    with script("compilers", "tried", tmp_path, monkeypatch) as made:
        monkeypatch.setattr(made.outcomes, "select", found.__getitem__)
        yield made


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
        assert run(compilers, tmp_path, monkeypatch, working(value, booted), *words) == status
        assert (tmp_path / "called").read_text().split() == ["run"]
    assert f"| `gcc-11` | `gcc-pgo` {row}\n" in (tmp_path / "tried.md").read_text()
    (written,) = (tmp_path / "out").rglob("program.g4")
    assert "set toolchain gcc:/opt/gcc.\n" in written.read_text()
    run(compilers, tmp_path, monkeypatch, working(value, booted), "--again", *words)
    assert (tmp_path / "called").read_text().split() == ["run"] * 2


def test_a_compiler_that_fails_has_its_reason_and_does_not_end_the_next(
    compilers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = "echo 'mepof: clang failed' >&2; exit 1"
    assert run(compilers, tmp_path, monkeypatch, failing, "clang-9", "pgo", "cspgo") == 1
    assert run(compilers, tmp_path, monkeypatch, working(100), "gcc:/opt/gcc", "gcc-pgo") == 0
    lines = (tmp_path / "tried.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| `clang-9`", "`cspgo`"],
        ["| `clang-9`", "`pgo`"],
        ["| `gcc-11`", "`gcc-pgo`"],
    ]
    assert rows[0].endswith("|  | failed: clang failed |  |  |  |")


def test_what_was_interrupted_has_no_result(
    compilers: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(compilers, tmp_path, monkeypatch, "exit 130", "clang-9", "pgo") == 130
    assert not (tmp_path / "tried.json").exists()
