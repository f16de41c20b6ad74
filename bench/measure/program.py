"""Runs of whole programs, for benchmarks of what comes out of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def report_of(out: Path) -> dict[str, Any]:
    """The report of a run whose results are there."""
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return report


def ran(program: Path, out: Path, store: Path | None) -> dict[str, Any]:
    """Run a program that measures, as `run` does, and give its report."""
    run(program, out, store)
    return report_of(out)


def run(program: Path, out: Path, store: Path | None) -> None:
    """Run a program as a user would; a run that fails ends this one too."""
    _run([program, "--out", out], store)


def planned(program: Path, store: Path | None) -> None:
    """Show what a run of a program would do."""
    _run([program, "--dry-run"], store)


def _run(words: list[str | Path], store: Path | None) -> None:
    mepof = Path(sys.executable).parent / "mepof"
    command: list[str | Path] = [mepof, "run", *words]
    if store is not None:
        command += ["--store", store]
    if (status := subprocess.run(command, check=False).returncode) != 0:
        sys.exit(status)  # it has said why
