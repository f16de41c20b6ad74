"""The table of configurations, with a mepof made of a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from .scripted_mepof import run, script, working

PROGRAM = """\
set arch arm64.
set toolchain clang-22.
set config android+gki.
set seed 1.
opt debian:new pgo rand binder O2.
eval plain.img;opt.img binder.
"""


@pytest.fixture
def configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, with choices and results of its own."""
    choices = tmp_path / "configurations.toml"
    choices.write_text(
        '[[kernel]]\nconfig = "android+gki"\narch = "arm64"\nsource = "debian:new"\n'
        'training = "rand binder"\nmetrics = "binder"\nalgorithms = ["pgo", "autofdo"]\n'
    )
    with script("configurations", "configurations", tmp_path, monkeypatch) as made:
        monkeypatch.setattr(made, "CHOICES", choices)
        yield made


@pytest.mark.parametrize(
    ("value", "booted", "status", "said"),
    [
        (150, True, 0, "booted | 25.00 |"),
        (210, True, 1, "booted | -5.00 |"),
        (150, False, 1, "does not boot |"),
    ],
)
def test_a_row_is_run_as_a_user_would_and_kept(
    configurations: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: float,
    booted: bool,
    status: int,
    said: str,
) -> None:
    mepof = working(value, booted)
    for _ in range(2):
        assert run(configurations, tmp_path, monkeypatch, mepof, "gki", "pgo") == status
        assert (tmp_path / "called").read_text().split() == ["run"]
    page = (tmp_path / "configurations.md").read_text()
    assert said in page and page.count("| not run |") == 1
    (written,) = (tmp_path / "out").rglob("program.g4")
    assert written.read_text() == PROGRAM


def test_a_kernel_that_is_not_built_is_a_row_with_the_reason(
    configurations: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = "echo 'mepof: bindgen is not installed' >&2; exit 1"
    assert run(configurations, tmp_path, monkeypatch, broken, "autofdo") == 1
    page = (tmp_path / "configurations.md").read_text()
    assert "| failed: bindgen is not installed |" in page
    assert run(configurations, tmp_path, monkeypatch, broken, "none") == 2
