"""Each directory of tests runs by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_directory_finds_what_other_directories_have_for_it() -> None:
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "tests/unit/measure"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout
