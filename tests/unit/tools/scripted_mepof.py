"""Benchmarks that run programs as a user would, with a mepof made of a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@contextmanager
def script(
    name: str, results: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """A benchmark that runs the mepof of a directory, and writes there.

    Args:
        results: the name of its page and record.
    """
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.delitem(sys.modules, name, raising=False)
    made = import_module(name)
    monkeypatch.setattr(made, "RESULT", directory / results)
    monkeypatch.setattr(made, "OUT", directory / "out")
    monkeypatch.setattr(import_module("measure.outcomes"), "MEPOF", directory / "mepof")
    yield made
    sys.modules.pop(name, None)


def report(value: float, booted: bool) -> str:
    rows = [
        {"image": image, "metric": metric, "case": "syscall", "value": count, "baseline": 200.0}
        for image, count in (("plain", 200.0), ("opt", value))
        for metric in ("kernel_instructions", "kernel_taken_branches")
    ]
    images = [
        {"name": "plain", "booted": True, "size_bytes": {"text": 1000}},
        {"name": "opt", "booted": booted, "size_bytes": {"text": 1050}},
    ]
    tools = {"clang": "clang version 22", "gcc": "gcc (GCC) 11.3.0"}
    provenance = {"kernel": "Linux 6.12.1", "tools": tools}
    return json.dumps(
        {"baseline": "plain", "cases": rows, "images": images, "provenance": provenance}
    )


def working(value: float, booted: bool = True) -> str:
    """What a mepof does whose kernel takes so many of 200 instructions."""
    return f"[ $1 = adapt ] || cat > $4/report.json <<'END'\n{report(value, booted)}\nEND"


def run(
    made: ModuleType, directory: Path, monkeypatch: pytest.MonkeyPatch, mepof: str, *words: str
) -> int:
    """Run a benchmark with a mepof that does this; its status. ``called`` has the commands."""
    program = directory / "mepof"
    program.write_text(f'#!/bin/sh\necho "$1" >> {directory}/called\n{mepof}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [f"{made.__name__}.py", *words])
    try:
        made.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
