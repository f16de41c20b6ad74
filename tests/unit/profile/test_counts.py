"""Profiles of instrumented programs, made by Clang and read through llvm-profdata."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.profile.counts import Comparison, FunctionCounts, compare_counts, read_counts
from mepof.profile.instrumentation import toolchain_reading

CLANG = shutil.which("clang-22") or "clang"
PROFDATA = shutil.which("llvm-profdata-22") or "llvm-profdata"
SOURCE = """
__attribute__((noinline)) int hot(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) sum += i; else sum ^= i;
    return sum;
}
static __attribute__((noinline)) int rare(int n) { return n * 5; }
int main(int argc, char **argv) {
    int total = 0;
    for (int i = 0; i < 100; i++) total += hot(argc + i);
    return argc > 5 ? rare(total) & 1 : 0;
}
"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Indexed profiles of a program that ran without arguments, and with five."""
    directory = tmp_path_factory.mktemp("profiles")
    (directory / "a.c").write_text(SOURCE)
    command = [CLANG, "-O1", "-fprofile-generate", "a.c", "-o", "a"]
    subprocess.run(command, cwd=directory, check=True)
    for name, words in (("one", ()), ("other", ("1", "2", "3", "4", "5"))):
        environment = {"LLVM_PROFILE_FILE": f"{name}.profraw"}
        subprocess.run(["./a", *words], cwd=directory, env=environment, check=True)
        merge = [PROFDATA, "merge", f"{name}.profraw", "-o", f"{name}.profdata"]
        subprocess.run(merge, cwd=directory, check=True)
    return directory / "one.profdata", directory / "other.profdata"


def test_functions_are_read_with_their_counts(profiles: tuple[Path, Path]) -> None:
    hot, main, rare = read_counts(profiles[0])
    assert (hot.name, main.name, rare.name) == ("hot", "main", "a.c;rare")
    assert hot.total > 5000 > main.total > 0 == rare.total
    assert read_counts(profiles[0].with_suffix(".profraw")) == (hot, main, rare)


def test_a_raw_profile_is_read_by_an_earlier_version_if_the_newest_refuses_it(
    profiles: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = profiles[0].with_suffix(".profraw")
    for tool in ("clang", "ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-profdata"):
        command = tmp_path / f"{tool}-30"
        command.write_text("#!/bin/sh\ntest $1 != show && echo version 30.1.0\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert toolchain_reading([profiles[0]]).version == "30.1.0"
    assert toolchain_reading([profiles[0], raw]).version != "30.1.0"
    assert read_counts(raw) == read_counts(profiles[0], toolchain_reading([raw]))
    cut = tmp_path / "cut.profraw"
    cut.write_bytes(raw.read_bytes()[:40])
    assert toolchain_reading([cut]).version == "30.1.0"


def test_the_overlap_is_that_of_llvm_profdata(profiles: tuple[Path, Path]) -> None:
    shown = subprocess.run(
        [PROFDATA, "overlap", *profiles], capture_output=True, text=True, check=True
    ).stdout
    expected = re.search(r"Edge profile overlap: ([\d.]+)%", shown)
    assert expected is not None
    found = compare_counts(*map(read_counts, profiles))
    assert 100 * found.overlap == pytest.approx(float(expected[1]), abs=0.0006)
    assert 0.9 < found.overlap < 1
    assert 1 - found.overlap == pytest.approx(sum(d.lost for d in found.differences))
    assert (found.common, found.changed, found.base_only, found.test_only) == (3, 0, 0, 0)


def test_a_profile_is_like_itself(profiles: tuple[Path, Path]) -> None:
    counts = read_counts(profiles[1])
    found = compare_counts(counts, counts)
    assert found.overlap == pytest.approx(1)
    assert found == Comparison(found.overlap, 3, 0, 0, 0, ())


def function(name: str, flow: str, *blocks: int) -> FunctionCounts:
    return FunctionCounts(name, flow, blocks)


def test_other_control_flow_has_nothing_in_common() -> None:
    base = [function("same", "0x1", 30, 20), function("old", "0x2", 50)]
    test = [function("same", "0x3", 30, 20), function("new", "0x2", 50)]
    found = compare_counts(base, test)
    assert (found.overlap, found.changed) == (0, 1)
    assert (found.common, found.base_only, found.test_only) == (1, 1, 1)
    assert [(d.name, d.lost) for d in found.differences] == [
        ("same", 0.5),
        ("new", 0.25),
        ("old", 0.25),
    ]


def test_control_flow_distinguishes_functions_with_one_name() -> None:
    twins = [function("twin", "0x1", 40), function("twin", "0x2", 60)]
    assert compare_counts(twins, twins[::-1]).overlap == pytest.approx(1)
    assert compare_counts(twins, twins[:1]).overlap == pytest.approx(0.4)


def test_empty_profiles_do_not_overlap() -> None:
    assert compare_counts([], []).overlap == 0
    assert compare_counts([function("a", "0x1", 0)], []).base_only == 1


@pytest.mark.parametrize(("size", "message"), [(20, "cannot be read"), (64, "has no functions")])
def test_a_damaged_profile_is_the_users_error(tmp_path: Path, size: int, message: str) -> None:
    path = tmp_path / "broken.profdata"
    path.write_bytes(b"\xfflprofi\x81" + bytes(size))
    with pytest.raises(InputError, match=message):
        read_counts(path)
