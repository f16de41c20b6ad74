"""A played phone on a bench, for the tests of flashing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from writers.played_bench import Bench, check
from writers.played_phone import install


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, check=check)
    host = install(tmp_path / "programs", made.adb_port)
    monkeypatch.setenv("PATH", f"{host}:{os.environ['PATH']}")
    (tmp_path / "program").write_bytes(b"program")
    monkeypatch.setenv("MEPOF_TEST_FILE", str(tmp_path / "program"))
    yield made
    made.off()
