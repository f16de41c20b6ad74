"""The command line, called as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mepof.cli.main import main


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str


Mepof = Callable[..., Answer]


@pytest.fixture
def mepof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Mepof:
    monkeypatch.chdir(tmp_path)

    def call(*words: str | Path) -> Answer:
        monkeypatch.setattr("sys.argv", ["mepof", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Answer(ended.value.code, out, err)

    return call
