"""Counts by object, of profiles of every kind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from writers.traced_kernel import CLANG

from mepof.errors import InputError
from mepof.profile.hotness import hotness
from mepof.toolchain import gcda
from mepof.toolchain.gcda import Counts, Function

PROFDATA = shutil.which("llvm-profdata-22") or "llvm-profdata"
SOURCE = """
int main(int argc, char **argv);
static __attribute__((noinline)) int same(int n) { return n * 5; }
__attribute__((noinline)) int shared(int n) { return same(n) + 1; }
int main(int argc, char **argv) {
    int total = 0;
    for (int i = 0; i < 100; i++) total += shared(argc + i);
    return total < 0;
}
"""


def test_counts_of_clang_say_where_a_static_function_is_from(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    command = [CLANG, "-O1", "-fprofile-generate", "a.c", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./a"], cwd=tmp_path, env={"LLVM_PROFILE_FILE": "a.profraw"}, check=True)
    merge = [PROFDATA, "merge", "a.profraw", "-o", "kernel.profdata"]
    subprocess.run(merge, cwd=tmp_path, check=True)
    defined = {"a.o": ["same"], "b.o": ["same"], "c.o": ["shared"], "d.o": ["shared"]}
    found = hotness(tmp_path / "kernel.profdata", defined)
    assert found["a.o"] >= 100
    assert "b.o" not in found
    # Nothing says where it is from.
    assert found["c.o"] == found["d.o"] >= 100


def test_counts_of_gcc_are_those_of_its_files(tmp_path: Path) -> None:
    ran = Function((1, 2, 3), {0: (5, 0, 7), 6: (2,)})
    idle = Function((4, 5, 6), {0: (0, 0)})
    counts = Counts(0x42323258, (1, 2), 1, (ran, idle, ran))
    path = tmp_path / "kernel.gcda.tar"
    gcda.write_archive({"fs/open.o": counts, "gone.o": counts}, path)
    assert hotness(path, {"fs/open.o": ["f"], "mm/a.o": []}) == {"fs/open.o": 24}
    assert hotness(tmp_path, {"fs/open.o": ["f"]}) == {"fs/open.o": 24}


def test_samples_are_those_of_functions(tmp_path: Path) -> None:
    profile = tmp_path / "kernel.afdo"
    profile.write_text("hot:900:9\n 1: 900\nwarm:90:9\n 1: 90\n")
    # A layout of the same profile says nothing, before it or after.
    (tmp_path / "a.ld_profile").write_text("hot\n")
    defined = {"a.o": ["hot"], "b.o": ["warm", "cold"]}
    for given in (profile, tmp_path):
        assert hotness(given, defined) == {"a.o": 900, "b.o": 90}


@pytest.mark.parametrize("content", [b"", b"hot\nwarm\n", bytes(600), b"\x7fELF" + bytes(99)])
def test_what_counts_nothing_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match="does not say how often functions ran"):
        hotness(path, {})
