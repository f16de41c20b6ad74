"""What the benchmarks rest on."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
TEST_SET = BENCH / "model_debian"


def test_every_program_of_the_test_set_says_what_it_is_made_of() -> None:
    described = tomllib.loads((TEST_SET / "programs.toml").read_text())["programs"]
    assert set(described) == {path.stem for path in TEST_SET.glob("*.c")}
    assert len(described) >= 20
    assert all((TEST_SET / one["own"]).is_dir() for one in described.values() if "own" in one)


@pytest.fixture(scope="module")
def overlap() -> Any:
    """The module, which is not on the path of tests."""
    spec = importlib.util.spec_from_file_location("overlap", BENCH / "measure" / "overlap.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["overlap"] = module
    spec.loader.exec_module(module)
    return module


READ, WRITE = {"entry": 10, "read": 90}, {"entry": 20, "write": 180}


@pytest.mark.parametrize(
    ("case", "percent", "nearest", "nearest_percent"),
    [
        # The same work under another name, and more of it.
        ({"entry": 1000, "read": 9000}, 100, "read", 100),
        # What two actions do: each alone has half of it.
        ({"entry": 10, "read": 45, "write": 45}, 100, "read", 55),
        # Shared code alone, of which no action has as large a share.
        ({"entry": 50, "map": 50}, 10, "read", 10),
        ({"map": 7}, 0, "read", 0),
        ({}, 0, "read", 0),
    ],
)
def test_overlap_counts_code_as_far_as_an_action_works_there(
    overlap: Any, case: dict[str, int], percent: float, nearest: str, nearest_percent: float
) -> None:
    found = overlap.likeness(case, {"read": READ, "write": WRITE})
    assert found.percent == pytest.approx(percent)
    assert (found.nearest, found.nearest_percent) == (nearest, pytest.approx(nearest_percent))


def test_work_is_trained_near_or_far_by_its_overlap(overlap: Any) -> None:
    kinds = [overlap.kind_of(percent) for percent in (0.0, 59.9, 60.0, 97.9, 98.0, 100.0)]
    assert kinds == ["far", "far", "near", "near", "trained", "trained"]
