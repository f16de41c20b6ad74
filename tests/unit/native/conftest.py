"""The native parts, built once by their Makefiles."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack
from mepof.toolchain import scheduling_models

NATIVE = Path(__file__).parents[3] / "native"
# Find the marks, for programs that are built without a Makefile.
ABI_FLAGS = (f"-I{NATIVE}/abi", f"-I{NATIVE}/abi/x86_64")


class TableSize(ctypes.Structure):
    """``struct table_size``."""

    _fields_ = (("sets", ctypes.c_uint32), ("ways", ctypes.c_uint32))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with ``kbench``, ``agent``, ``count.so`` and ``record.so``."""
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed: apt-get install musl-tools")
    return build(tmp_path_factory.mktemp("native"))


def build(out: Path) -> Path:
    """Builds the guest's programs and the plugins in that directory."""
    for directory in (NATIVE, NATIVE / "tcg-plugin"):
        subprocess.run(["make", "-s", "-C", directory, f"OUT={out}"], check=True, timeout=120)
    return out


@pytest.fixture(scope="session")
def pmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin ``pmu.so``."""
    return build_pmu(tmp_path_factory.mktemp("pmu"))


def build_pmu(out: Path) -> Path:
    """Builds ``pmu.so`` in that directory."""
    words = ["make", "-s", "-C", str(NATIVE / "pmu"), f"OUT={out}", f"LLVM_CONFIG={llvm_config()}"]
    subprocess.run(words, check=True, timeout=120)
    return out / "pmu.so"


def llvm_config() -> str:
    """``llvm-config`` of the LLVM that the model reads. Skips the test without it."""
    try:
        return scheduling_models.llvm_config()
    except EnvironmentLack as lack:
        pytest.skip(f"{lack}: {lack.remedy}")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The core model of ``pmu.so`` without the emulator, and the harness that calls it."""
    path = tmp_path_factory.mktemp("pmu") / "model.so"
    names = ("cache", "crossing", "direction", "targets", "model", "window", "pages*")
    parts = [path for name in names for path in (NATIVE / "pmu").glob(f"{name}.c")]
    sources = [Path(__file__).with_name("pmu_harness.c"), *parts]
    flags = ("-std=c17", "-Wall", "-Wextra", "-Werror", "-O1", "-fsanitize=undefined")
    trap = "-fsanitize-undefined-trap-on-error"
    words = ("gcc", *flags, trap, "-shared", "-fPIC", f"-I{NATIVE / 'pmu'}", "-o", str(path))
    subprocess.run([*words, *sources], check=True, timeout=60)
    return ctypes.CDLL(str(path))
