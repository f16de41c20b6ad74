"""Runs of whole programs, for benchmarks of what comes out of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mepof.toolchain.named import DEFAULT

MEPOF = Path(sys.executable).parent / "mepof"
_TOOLCHAIN = re.compile(r"^set toolchain ([\w-]+)", re.MULTILINE)


def compiler(provenance: Mapping[str, Any]) -> str:
    """What compiled the kernels, as it reports itself.

    Args:
        provenance: of a report: the program, and all tools, some of which another compiler made.
    """
    name = next(iter(_TOOLCHAIN.findall(provenance["program"])), DEFAULT)
    found: list[str] = provenance["tools"][name.partition("-")[0]].split(", ")
    return next((each for each in found if each.startswith(f"{name} ")), found[-1])


def report_of(out: Path) -> dict[str, Any]:
    """The report of a run whose results are there."""
    report: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return report


def ran(program: Path, out: Path, store: Path | None) -> dict[str, Any]:
    """Run a program that measures, as `run` does, and give its report: also where an image was
    measured and misses a goal of the program."""
    (out / "report.json").unlink(missing_ok=True)
    status = _status([program, "--out", out], store)
    if status not in (0, 1) or (status == 1 and not _only_missed_goals(out)):
        sys.exit(status)
    return report_of(out)


def _only_missed_goals(out: Path) -> bool:
    """Whether all that failed in a run may be that goals were missed."""
    if not (out / "report.json").is_file():
        return False
    missed = [goal for goal in report_of(out)["goals"] if not goal["met"]]
    return bool(missed) and all(goal["value"] is not None for goal in missed)


def run(program: Path, out: Path, store: Path | None) -> None:
    """Run a program as a user would; a run that fails ends this one too."""
    _run([program, "--out", out], store)


def planned(program: Path, store: Path | None) -> None:
    """Show what a run of a program would do."""
    _run([program, "--dry-run"], store)


def _run(words: list[str | Path], store: Path | None) -> None:
    if (status := _status(words, store)) != 0:
        sys.exit(status)  # it has said why


def _status(words: list[str | Path], store: Path | None) -> int:
    command: list[str | Path] = [MEPOF, "run", *words]
    if store is not None:
        command += ["--store", store]
    return subprocess.run(command, check=False).returncode
