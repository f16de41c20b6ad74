"""The matrix of kernels, compilers, algorithms and architectures, with a mepof made of a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"
NAME = "5.10/clang-22/pgo/x86-64"
PROGRAM = """\
set arch x86-64.
set toolchain clang-22.
set config slim.
set seed 1.
opt debian:old pgo rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
"""


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, with choices and results of its own."""
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.delitem(sys.modules, "matrix", raising=False)
    import matrix

    choices = tmp_path / "matrix.toml"
    choices.write_text(
        'architectures = ["x86-64", "arm64"]\n[kernels]\n"5.10" = "debian:old"\n'
        '[toolchains]\nclang-22 = ["pgo"]\n'
    )
    monkeypatch.setattr(matrix, "CHOICES", choices)
    monkeypatch.setattr(matrix, "RESULT", tmp_path / "matrix")
    monkeypatch.setattr(matrix, "OUT", tmp_path / "out")
    monkeypatch.setattr(matrix, "MEPOF", tmp_path / "mepof")
    yield matrix
    sys.modules.pop("matrix", None)


def report(value: float, booted: bool = True) -> str:
    metrics = ("kernel_instructions", "kernel_taken_branches")
    rows = [
        {"image": image, "metric": metric, "case": "syscall", "value": count, "baseline": 200.0}
        for image, count in (("plain", 200.0), ("opt", value))
        for metric in metrics
    ]
    images = [
        {"name": "plain", "booted": True, "size_bytes": {"text": 1000}},
        {"name": "opt", "booted": booted, "size_bytes": {"text": 990}},
    ]
    provenance = {"kernel": "Linux 5.10.262", "tools": {"clang": "clang version 22"}}
    return json.dumps(
        {"baseline": "plain", "cases": rows, "images": images, "provenance": provenance}
    )


def run(matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, mepof: str, *words: str) -> int:
    """Run the script with a mepof that does this; its status."""
    program: Path = matrix.MEPOF
    program.write_text(f'#!/bin/sh\necho "$1" >> {program.parent}/called\n{mepof}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["matrix.py", *words])
    try:
        matrix.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def working(value: float, booted: bool = True) -> str:
    return f"[ $1 = adapt ] || cat > $4/report.json <<'END'\n{report(value, booted)}\nEND"


@pytest.mark.parametrize(
    ("value", "booted", "status", "cell"),
    [(150, True, 0, "25.00 %"), (210, True, 1, "-5.00 %"), (150, False, 1, "does not boot")],
)
def test_a_cell_is_run_as_a_user_would_and_kept(
    matrix: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: float,
    booted: bool,
    status: int,
    cell: str,
) -> None:
    for _ in range(2):
        assert run(matrix, monkeypatch, working(value, booted), "pgo", "x86-64") == status
        assert (tmp_path / "called").read_text().split() == ["adapt", "run"]
    page = (tmp_path / "matrix.md").read_text()
    assert "1 of 2 cells" in page
    assert f"| 5.10 | {cell} |" in page and "| 5.10 | not run |" in page
    (written,) = (tmp_path / "out").rglob("program.g4")
    assert written.read_text() == PROGRAM
    run(matrix, monkeypatch, working(value), NAME, "--again")
    assert (tmp_path / "called").read_text().split() == ["adapt", "run"] * 2


@pytest.mark.parametrize(
    ("mepof", "status", "outcome", "called"),
    [
        ("echo 'mepof: it does not fit' >&2; exit 1", 0, "refused", ["adapt"]),
        (
            "[ $1 = adapt ] || { echo 'mepof: it does not fit' >&2; echo help >&2; exit 1; }",
            1,
            "failed",
            ["adapt", "run"],
        ),
    ],
)
def test_a_cell_that_does_not_fit_or_fails_has_its_reason(
    matrix: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mepof: str,
    status: int,
    outcome: str,
    called: list[str],
) -> None:
    assert run(matrix, monkeypatch, mepof, NAME) == status
    assert (tmp_path / "called").read_text().split() == called
    assert f"- `{NAME}` {outcome}: it does not fit\n" in (tmp_path / "matrix.md").read_text()


@pytest.mark.parametrize(("command", "status"), [("adapt", 3), ("run", 3), ("run", 130)])
def test_a_cell_that_is_interrupted_or_lacks_something_here_has_no_result(
    matrix: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    status: int,
) -> None:
    assert run(matrix, monkeypatch, f"[ $1 != {command} ] || exit {status}", NAME) == status
    assert not (tmp_path / "matrix.json").exists()


def test_words_that_no_cell_has_are_an_error(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(matrix, monkeypatch, "", "pgo", "gcc-12") == 2
    assert not (tmp_path / "called").exists()
