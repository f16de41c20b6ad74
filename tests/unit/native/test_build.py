"""The C compiles without warnings, and the binaries depend on nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.steps import executions, guest, plugins, suite_programs
from mepof.steps import pmu as pmu_step

from .conftest import ABI_FLAGS, NATIVE, build, build_pmu

SOURCES = sorted(
    path
    for part in ("kbench", "guest", "tcg-plugin", "executions", "pmu")
    for path in (NATIVE / part).glob("*.c")
)
# The encodings of mark_encoding.h as they are in memory.
MARKS = {"start": bytes.fromhex("0f1f84000100504d"), "stop": bytes.fromhex("0f1f84000200504d")}
# movz xzr, #0x4d51 and #0x4d52
ARM64_MARKS = {"start": bytes.fromhex("3faa89d2"), "stop": bytes.fromhex("5faa89d2")}


@pytest.mark.parametrize("compiler", ["clang-22", "gcc"])
def test_sources_have_no_warning(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-O2", "-fsyntax-only", *ABI_FLAGS]
    subprocess.run([compiler, *flags, *SOURCES], check=True, timeout=60)


@pytest.mark.parametrize(
    "makefile",
    # The step that builds `pmu` overrides what is in its Makefile.
    sorted({NATIVE / "Makefile", *NATIVE.glob("*/Makefile")} - {NATIVE / "pmu/Makefile"}),
    ids=lambda path: path.parent.name,
)
def test_a_warning_of_a_newer_compiler_stops_no_user(makefile: Path, tmp_path: Path) -> None:
    given = (f"OUT={tmp_path}", "SUITE=threads")
    make = ("make", "--dry-run", "-C", str(makefile.parent), *given)

    def commands(environment: dict[str, str]) -> str:
        return subprocess.check_output(make, env=environment, text=True)

    assert "-Werror" in commands({**os.environ})
    assert "-Werror" not in commands({"PATH": os.environ["PATH"]})


def read_by_compiler(*parts: str) -> set[Path]:
    """The project's own files that the C of these directories consists of."""
    sources = [path for part in parts for path in NATIVE.glob(part)]
    said = subprocess.run(
        ["gcc", "-std=c17", *ABI_FLAGS, "-MM", *sources],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    words = said.replace("\\\n", " ").split()
    return {Path(word).resolve() for word in words if not word.endswith(":")}


@pytest.mark.parametrize(
    ("parts", "patterns"),
    [
        (("kbench/*.c", "guest/*.c"), guest._SOURCES),
        (("suites/*.c", "suites/threads/*.c"), (*suite_programs._SHARED, "suites/threads")),
        (("tcg-plugin/*.c",), plugins.BODY.sources),
        (("executions/*.c", "tcg-plugin/marks.c", "tcg-plugin/decode*.c"), executions.BODY.sources),
        (("pmu/*.c", "tcg-plugin/marks.c"), pmu_step._SOURCES),
    ],
    ids=["guest", "suite", "plugins", "executions", "pmu"],
)
def test_every_source_is_in_the_identity_of_its_step(
    parts: tuple[str, ...], patterns: tuple[str, ...]
) -> None:
    named = {path for pattern in patterns for path in NATIVE.glob(pattern)}
    inside = {path for directory in named if directory.is_dir() for path in directory.rglob("*")}
    assert read_by_compiler(*parts) <= named | inside


def test_guest_programs_are_static(built: Path) -> None:
    for name in ("kbench", "agent"):
        program_headers = subprocess.run(
            ["readelf", "-l", built / name], check=True, capture_output=True, text=True
        ).stdout
        assert "INTERP" not in program_headers


@pytest.fixture(scope="session")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the guest programs for arm64."""
    compiler = "aarch64-linux-gnu-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed: apt-get install gcc-aarch64-linux-gnu")
    out = tmp_path_factory.mktemp("arm64")
    programs = [out / "kbench", out / "agent"]
    subprocess.run(
        ["make", "-s", "-C", NATIVE, f"OUT={out}", f"GUEST_CC={compiler}", *programs],
        check=True,
        timeout=120,
    )
    return out


@pytest.mark.parametrize("name", ["kbench", "agent"])
def test_arm64_guest_programs_are_static_and_for_arm64(arm64: Path, name: str) -> None:
    shown = subprocess.run(
        ["readelf", "-hl", arm64 / name], check=True, capture_output=True, text=True
    ).stdout
    assert "AArch64" in shown
    assert "INTERP" not in shown


@pytest.mark.parametrize("mark", ARM64_MARKS)
def test_kbench_for_arm64_contains_each_mark_once(arm64: Path, mark: str) -> None:
    assert (arm64 / "kbench").read_bytes().count(ARM64_MARKS[mark]) == 1


def test_a_build_in_another_directory_is_identical(built: Path, tmp_path: Path) -> None:
    build(tmp_path)
    for name in ("kbench", "agent", "count.so", "record.so"):
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes()


def test_a_model_built_in_another_directory_is_identical(pmu: Path, tmp_path: Path) -> None:
    assert build_pmu(tmp_path).read_bytes() == pmu.read_bytes()


@pytest.mark.parametrize("mark", MARKS)
def test_kbench_contains_each_mark_once(built: Path, mark: str) -> None:
    assert (built / "kbench").read_bytes().count(MARKS[mark]) == 1


def test_marks_disassemble_as_no_operations(built: Path) -> None:
    listing = subprocess.run(
        ["objdump", "-d", built / "kbench"], check=True, capture_output=True, text=True
    ).stdout
    for number in ("0x4d500001", "0x4d500002"):
        assert f"nopl   {number}(%rax,%rax,1)" in listing
