"""tools/run-tests with fake programs: what it runs, and what it does when one of them fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "run-tests"


@dataclass(frozen=True)
class Checkout:
    """A directory that stands for a checkout; its programs write down their calls."""

    root: Path

    def program(self, path: str, body: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/bash\necho "{file.name} $*" >>"{self.root}/calls"\n{body}\n')
        file.chmod(0o755)

    def run(self) -> tuple[int, list[str]]:
        """The status, and the calls but that of mepof, which is made at the same time."""
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        command = [str(self.root / "tools/run-tests"), "-m", "not slow"]
        done = subprocess.run(command, env={"PATH": path}, check=False, timeout=60)
        calls = (self.root / "calls").read_text().splitlines()
        return done.returncode, [call for call in calls if not call.startswith("mepof ")]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(SCRIPT, tmp_path / "tools/run-tests")
    made.program("bin/cargo")
    made.program("bin/make")
    made.program(".venv/bin/mepof")
    made.program(".venv/bin/python")
    return made


LINT = "make lint"
CARGO = "cargo test --quiet --locked --workspace"
UNIT = "python -m pytest -m not slow --numprocesses auto --dist loadfile tests/unit"
BOOT = UNIT.replace("unit", "boot")


@pytest.mark.parametrize("kernels", ["", "exit 1"])
def test_every_test_runs_whatever_becomes_of_the_kernels(checkout: Checkout, kernels: str) -> None:
    checkout.program(".venv/bin/mepof", kernels)
    assert checkout.run() == (0, [LINT, CARGO, UNIT, BOOT])
    log = (checkout.root / "calls").read_text()
    assert "mepof run examples/quickstart.g4 --out build/kernels" in log


def test_boots_wait_for_their_kernels(checkout: Checkout) -> None:
    ready = checkout.root / "ready"
    os.mkfifo(checkout.root / "units-ran")
    checkout.program(".venv/bin/mepof", f"read _ <{checkout.root}/units-ran; touch {ready}")
    checkout.program(
        ".venv/bin/python",
        f"case $* in *unit) echo >{checkout.root}/units-ran ;; *) [[ -e {ready} ]] ;; esac",
    )
    assert checkout.run() == (0, [LINT, CARGO, UNIT, BOOT])


def test_a_failure_ends_the_builds_as_well(checkout: Checkout) -> None:
    ended = checkout.root / "ended"
    began = checkout.root / "began"
    os.mkfifo(began)
    checkout.program(
        ".venv/bin/mepof",
        f"trap 'kill $!; echo >{ended}; exit 1' TERM; sleep 60 & echo >{began}; wait",
    )
    os.mkfifo(ended)
    checkout.program(".venv/bin/python", f"read _ <{began}; exit 3")
    status, calls = checkout.run()
    assert (status, calls) == (3, [LINT, CARGO, UNIT])
    assert ended.read_text() == "\n"
