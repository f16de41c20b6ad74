"""The simulation of a farm: what it shares, and what it waits for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def loaded() -> Any:
    """The module, which is not on the path of tests."""
    path = Path(__file__).parents[3] / "bench" / "measure" / "farm.py"
    spec = importlib.util.spec_from_file_location("farm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["farm"] = module
    spec.loader.exec_module(module)
    return module


farm = loaded()
Task = farm.Task


def step(name: str, kind: str, *inputs: str, boots: int = 0) -> dict[str, Any]:
    return {
        "step": name,
        "kind": kind,
        "inputs": list(inputs),
        "seconds": 10.0,
        "cores": 2,
        "megabytes": 1.0,
        "boots": boots,
    }


STEPS = [
    step("guest", "guest"),
    step("source", "kernel-source"),
    step("plain", "kernel-build", "source"),
    step("collect", "profile-collect", "plain", "guest"),
    step("opt", "kernel-build", "source", "collect"),
    step("measure", "measure", "plain", "opt", boots=4),
]


def test_what_does_not_depend_on_a_load_is_made_once() -> None:
    made = farm.farm_of(STEPS, 2, 3, 5)
    names = [name.split()[0] for name in made if "boot" not in name]
    counts = {each["step"]: names.count(each["step"]) for each in STEPS}
    assert [*counts.values()] == [1, 2, 6, 30, 30, 30]
    assert made["opt kernel1 compiler2 load4"].reads == (
        "source kernel1",
        "collect kernel1 compiler2 load4",
    )
    boots = made["measure kernel0 compiler0 load0"].reads
    assert [made[boot].seconds for boot in boots] == [5.0] * 4


def day(tasks: dict[str, Any], workers: int = 1, cores: int = 2, **more: float) -> float:
    given = {"overhead": 0.0, "link": 1.0, **more}
    made = farm.simulate(tasks, workers, cores, given["overhead"], given["link"])
    return float(made.seconds)


def test_tasks_share_a_worker_as_far_as_it_has_cores() -> None:
    tasks = {f"t{n}": Task(10, 1, ()) for n in range(4)}
    assert day(tasks) == 20
    assert day(tasks, 2) == 10
    assert day({**tasks, "build": Task(10, farm.ALL, ())}) == 30
    assert day({"a": Task(10, 1, ()), "b": Task(5, 1, ("a",)), "c": Task(15, 1, ())}) == 15


def test_the_longest_way_begins_first() -> None:
    tasks = {"short": Task(10, 1, ()), "a": Task(10, 1, ()), "b": Task(10, 1, ("a",))}
    assert day(tasks, cores=1) == 30
    assert day(tasks, 2, 1) == 20


def test_the_store_and_the_scheduler_are_waited_for() -> None:
    tasks = {"a": Task(1, 1, (), 10), "b": Task(1, 1, ("a",)), "c": Task(1, 1, ("a",))}
    # It is written once, and read by the other worker alone.
    assert day(tasks, 1, 2, link=10.0) == pytest.approx(2)
    assert day(tasks, 2, 1, link=10.0) == pytest.approx(3)
    assert day(tasks, 1, 2, overhead=5.0) == pytest.approx(5 + 10 + 10 + 1)
    made = farm.simulate(tasks, 1, 2, 5.0, 1.0)
    assert made.bottleneck in ("scheduler", "store", "workers") and 0 < made.cores <= 1
