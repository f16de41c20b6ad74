"""The native parts, built once as the Makefile builds them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[3] / "native"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with ``kbench``, ``agent``, ``count.so`` and ``record.so``."""
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed: apt-get install musl-tools")
    out = tmp_path_factory.mktemp("native")
    subprocess.run(["make", "-s", "-C", NATIVE, f"OUT={out}"], check=True, timeout=120)
    return out


@pytest.fixture(scope="session")
def pmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin ``pmu.so``."""
    out = tmp_path_factory.mktemp("pmu")
    subprocess.run(["make", "-s", "-C", NATIVE / "pmu", f"OUT={out}"], check=True, timeout=120)
    return out / "pmu.so"
