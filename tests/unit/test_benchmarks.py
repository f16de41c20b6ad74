"""What the benchmarks rest on."""

from __future__ import annotations

import tomllib
from pathlib import Path

TEST_SET = Path(__file__).parents[2] / "bench" / "model_debian"


def test_every_program_of_the_test_set_says_what_it_is_made_of() -> None:
    described = tomllib.loads((TEST_SET / "programs.toml").read_text())["programs"]
    assert set(described) == {path.stem for path in TEST_SET.glob("*.c")}
    assert len(described) >= 20
    assert all((TEST_SET / one["own"]).is_dir() for one in described.values() if "own" in one)
