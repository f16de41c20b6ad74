"""The kernel-side runtime of ``pgo``, run as a user program under each Clang installed here.

It is the very code that goes into the kernel, with a header that stands in for the kernel's.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.kernel.overlay import load, native_directory
from mepof.process import run
from mepof.toolchain.clang import Clang

HERE = Path(__file__).with_name("runtime")
SOURCES = native_directory() / "overlays/pgo/kernel/mepof"
NO_SECTION = ("bits",)

pytestmark = pytest.mark.skipif(
    not Clang.installed(), reason="no Clang of a supported version is installed"
)


@pytest.fixture(params=Clang.installed(), ids=lambda toolchain: toolchain.version)
def toolchain(request: pytest.FixtureRequest) -> Clang:
    chosen: Clang = request.param
    return chosen


@pytest.fixture
def program(toolchain: Clang, tmp_path: Path) -> Path:
    clang = toolchain.tool("compiler")
    header = toolchain.resource_directory() / "include/profile/InstrProfData.inc"
    (tmp_path / "InstrProfData.inc").write_bytes(header.read_bytes())
    common = [clang, "-c", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter"]
    for overlay in map(load, toolchain.overlays):
        (edit,) = overlay.edits
        common += [word for word in edit.text.split() if word.startswith("-")]
    for name in ("raw_profile", "value_profile"):
        # Compiled from a copy, so that the compiler's header lies beside it as in the kernel.
        for source in (f"{name}.c", "profile.h"):
            (tmp_path / source).write_bytes((SOURCES / source).read_bytes())
        made = run([*common, "-Werror", f"-I{HERE}", f"{name}.c"], cwd=tmp_path)
        assert made.output == ""
    generate = ["-fprofile-generate", "-mllvm", "-vp-counters-per-site=4"]
    run([*common, *generate, HERE / "program.c"], cwd=tmp_path)
    bounds = []
    for section in ("data", "cnts", "names", "vnds", "bits"):
        for end, linker in (("start", "start"), ("end", "stop")):
            value = "0" if section in NO_SECTION else f"__{linker}___llvm_prf_{section}"
            bounds.append(f"-Wl,--defsym=__mepof_prf_{section}_{end}={value}")
    objects = ["program.o", "raw_profile.o", "value_profile.o"]
    linker = f"-fuse-ld={'lld' + toolchain.suffix}"
    run([clang, linker, "-Wl,-z,nostart-stop-gc", *bounds, *objects, "-o", "program"], cwd=tmp_path)
    return tmp_path / "program"


def shown(toolchain: Clang, raw: Path, function: str) -> str:
    tool = toolchain.tool("profile-merger")
    indexed = raw.with_suffix(".profdata")
    run([tool, "merge", "-o", indexed, raw])
    options = ["--counts", "--ic-targets", "--memop-sizes", f"--function={function}"]
    return run([tool, "show", *options, indexed]).output


def test_the_compilers_own_tool_reads_counts_targets_and_sizes(
    toolchain: Clang, program: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    run([program, raw])
    calls = shown(toolchain, raw, "call")
    assert re.search(r"Block counts: \[730\]", calls)
    assert re.search(r"often, +700 ", calls)
    assert re.search(r"seldom, +30 ", calls)
    copies = shown(toolchain, raw, "copy")
    # 48 lies in the range [33, 63], whose lower end stands for it.
    assert re.search(r"33, +50 ", copies)


def test_a_reset_leaves_no_values_and_a_small_buffer_nothing(
    toolchain: Clang, program: Path, tmp_path: Path
) -> None:
    raw, reset, short = (tmp_path / name for name in ("raw", "reset", "short"))
    run([program, raw, reset, short])
    assert re.search(r"65, +50 ", shown(toolchain, raw, "copy"))
    assert "often, " not in shown(toolchain, reset, "call")
    assert short.read_bytes() == b""
