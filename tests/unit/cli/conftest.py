"""A user at a shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.shell import Shell


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    return Shell(monkeypatch, capsys)
