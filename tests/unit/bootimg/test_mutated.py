"""The reader of boot images survives what fuzz/bootimg.py makes, here a few of its images."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).parents[3] / "fuzz" / "bootimg.py"


@pytest.mark.skipif(
    not all(map(shutil.which, ("lz4", "zstd"))), reason="lz4 or zstd is not installed"
)
def test_mutated_images_are_refused_or_come_back_and_a_run_is_resumed(tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"

    def run(images: int) -> tuple[str, int]:
        argv = (sys.executable, FUZZER, "600", f"--images={images}", "--seed=3", f"--resume={done}")
        said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout
        return said, sum(json.loads(line)["accepted"] for line in done.read_text().splitlines())

    said, accepted = run(1500)
    assert "tried in all: 1500" in said
    assert 500 < accepted < 1500
    assert run(1500)[1] == accepted
