"""The kernel-side runtime of ``gcc-pgo``, run as a user program beside GCC's own runtime.

It is the very code that goes into the kernel, with a header that stands in for the kernel's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mepof.kernel.overlay import load, native_directory
from mepof.process import run
from mepof.toolchain import gcda
from mepof.toolchain.gcc import Gcc

HERE = Path(__file__).with_name("gcov_runtime")
SOURCES = native_directory() / "overlays/gcov/kernel/mepof"
OBJECT = "program.o"

pytestmark = pytest.mark.skipif(
    not Gcc.installed(), reason="no GCC of a supported version is installed"
)


@pytest.fixture(scope="module", params=Gcc.installed(), ids=lambda toolchain: toolchain.version)
def toolchain(request: pytest.FixtureRequest) -> Gcc:
    chosen: Gcc = request.param
    return chosen


@pytest.fixture(scope="module")
def gcc(toolchain: Gcc) -> str:
    return toolchain.tool("compiler")


def edited(toolchain: Gcc, header: str) -> str:
    """The runtime's header with the overlays of a version."""
    for edit in (edit for name in toolchain.overlays for edit in load(name).edits):
        header = edit.text + header if edit.prepend else header + edit.text
    return header


@pytest.fixture(scope="module")
def program(toolchain: Gcc, gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("program")
    common = [gcc, "-c", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter"]
    generate = ["-fprofile-generate=.", f"-fprofile-prefix-path={room}"]
    run([*common, *generate, HERE / "program.c"], cwd=room)
    (room / "counts.h").write_text(edited(toolchain, (SOURCES / "counts.h").read_text()))
    for name in ("count_files", "value_profile"):
        text = (SOURCES / f"{name}.c").read_text()
        # User programs have thread-local storage.
        text = text.replace("struct indirect_call __gcov", "__thread struct indirect_call __gcov")
        (room / f"{name}.c").write_text(text)
        made = run([*common, "-Werror", f"-I{HERE}", f"{name}.c"], cwd=room)
        assert made.output == ""
    run([*common, "-DRUNTIME", HERE / "main.c"], cwd=room)
    objects = ["main.o", OBJECT, "count_files.o", "value_profile.o"]
    run([gcc, *objects, "-o", "ours"], cwd=room)
    run([*common, HERE / "main.c", "-o", "plain-main.o"], cwd=room)
    run([gcc, "-fprofile-generate", "plain-main.o", OBJECT, "-o", "theirs"], cwd=room)
    return room / "ours"


def test_objects_of_older_versions_have_no_room_for_a_checksum(gcc: str, tmp_path: Path) -> None:
    header = edited(Gcc("-11"), (SOURCES / "counts.h").read_text())
    offsets = (f"offsetof(struct object_counts, {name})" for name in ("stamp", "checksum"))
    program = f'{header}\n_Static_assert({" == ".join(offsets)}, "");\nint stamp, checksum;\n'
    (tmp_path / "checked.c").write_text(program)
    run([gcc, "-fsyntax-only", "-Wall", "-Werror", f"-I{HERE}", "checked.c"], cwd=tmp_path)


def without_addresses(counts: gcda.Counts) -> gcda.Counts:
    """Counts without the bits of values: some are addresses, which differ in each run."""
    functions = (
        replace(each, counters={k: v for k, v in each.counters.items() if k != gcda.BITS})
        for each in counts.functions
    )
    return replace(counts, functions=tuple(functions))


def test_the_counts_are_those_of_the_compilers_own_runtime(program: Path, tmp_path: Path) -> None:
    archive = tmp_path / "counts.tar"
    run([program, archive])
    run([program.with_name("theirs")], cwd=tmp_path)
    (made,) = tmp_path.glob("*.gcda")
    theirs = gcda.parse(made.read_bytes(), made.name)
    ours = gcda.read_archive(archive)
    assert list(ours) == [OBJECT]
    assert without_addresses(ours[OBJECT]) == without_addresses(theirs)
    assert (len(theirs.functions), theirs.executed) == (7, 6)


def test_a_reset_leaves_no_counts_and_a_small_buffer_nothing(program: Path, tmp_path: Path) -> None:
    first, reset, short = (tmp_path / name for name in ("first", "reset", "short"))
    run([program, first, reset, short])
    assert gcda.read_archive(first)[OBJECT].executed == 6
    left = gcda.read_archive(reset)[OBJECT]
    assert left.executed == 0
    assert len(left.functions) == 7
    assert short.read_bytes() == b""


def test_the_compiler_uses_the_sum(gcc: str, program: Path, tmp_path: Path) -> None:
    archive = tmp_path / "counts.tar"
    run([program, archive])
    counts = gcda.read_archive(archive)
    gcda.write_archive(gcda.add([(counts, 2), (counts, 1)]), tmp_path / "sum.tar")
    run(["tar", "-x", "-f", "sum.tar"], cwd=tmp_path)
    (summed,) = gcda.read_archive(tmp_path / "sum.tar").values()
    assert summed.max_arc == 3 * counts[OBJECT].max_arc
    use = [gcc, "-c", "-O2", "-fprofile-use", "-Werror=missing-profile", "-Werror"]
    run([*use, "-fdump-ipa-profile", HERE / "program.c"], cwd=tmp_path)
    (dump,) = tmp_path.glob("*.profile")
    assert "often" in dump.read_text()
    # The targets of the call are 700 and 30 of 730, three times.
    assert "2100" in dump.read_text()
