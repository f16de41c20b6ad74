"""The matrix of kernels, compilers, algorithms and architectures, with a mepof made of a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from .scripted_mepof import run, script, working

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
    choices = tmp_path / "matrix.toml"
    choices.write_text(
        'architectures = ["x86-64", "arm64"]\n[kernels]\n"5.10" = "debian:old"\n'
        '[toolchains]\nclang-22 = ["pgo"]\n'
    )
    with script("matrix", "matrix", tmp_path, monkeypatch) as made:
        monkeypatch.setattr(made, "CHOICES", choices)
        yield made


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
        assert run(matrix, tmp_path, monkeypatch, working(value, booted), "pgo", "x86-64") == status
        assert (tmp_path / "called").read_text().split() == ["adapt", "run"]
    page = (tmp_path / "matrix.md").read_text()
    assert "1 of 2 cells" in page
    assert f"| 5.10 | {cell} |" in page and "| 5.10 | not run |" in page
    (written,) = (tmp_path / "out").rglob("program.g4")
    assert written.read_text() == PROGRAM
    run(matrix, tmp_path, monkeypatch, working(value), NAME, "--again")
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
    assert run(matrix, tmp_path, monkeypatch, mepof, NAME) == status
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
    assert (
        run(matrix, tmp_path, monkeypatch, f"[ $1 != {command} ] || exit {status}", NAME) == status
    )
    assert not (tmp_path / "matrix.json").exists()


def test_words_that_no_cell_has_are_an_error(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run(matrix, tmp_path, monkeypatch, "", "pgo", "gcc-12") == 2
    assert not (tmp_path / "called").exists()
