"""How many counts of another kernel's profile its build used."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.algorithm.pgo import ALGORITHM
from mepof.algorithm.protocol import Use
from mepof.process import run
from mepof.profile.counts import FunctionCounts, read_counts
from mepof.profile.discarded import matched_percent
from mepof.toolchain.clang import Clang

OLD = """\
int kept(int x) { return x < 3 ? x : kept(x - 3) + 1; }
static __attribute__((noinline)) int changed(int x)
{
	for (int i = 0; i < 30; i++)
		if (i % 3)
			x += kept(i);
	return x;
}
int main(void) { return changed(0) < 0; }
"""
CLANG = Clang("-22")


def counts(name: str, *blocks: int) -> FunctionCounts:
    return FunctionCounts(name, "1", blocks)


def log_of(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_clang_tells_what_does_not_fit_and_does_not_fail_for_it(tmp_path: Path) -> None:
    source, profile = tmp_path / "a.c", tmp_path / "kernel.profdata"
    compiler = CLANG.tool("compiler")
    source.write_text(OLD)
    raw = [f"-fprofile-generate={tmp_path}", "a.c", "-o", "old"]
    run([compiler, "-O2", *raw], cwd=tmp_path)
    run([tmp_path / "old"], cwd=tmp_path)
    run([CLANG.tool("profile-merger"), "merge", "-o", profile, *tmp_path.glob("*.profraw")])
    source.write_text(OLD.replace("x += kept(i);", "x += kept(i); else if (x % 7 == i) return 0;"))
    told = ALGORITHM.use(tmp_path, Use(CLANG, same_source=False))
    flags = [*told.selected[0].cflags, "-Werror"]
    flags[0] = f"-fprofile-use={profile}"
    log = tmp_path / "log"
    log.write_text(run([compiler, "-O2", *flags, "-c", "a.c"], cwd=tmp_path).output)
    counted = read_counts(profile)
    lost = next(each.total for each in counted if each.name == "a.c;changed")
    total = sum(each.total for each in counted)
    assert 0 < lost < total
    found = matched_percent(counted, {"a.o": ["kept", "main"]}, log)
    assert found == pytest.approx(100 * (1 - lost / total))


def test_functions_that_are_gone_do_not_match(tmp_path: Path) -> None:
    counted = (
        counts("vfs_read", 60, 10),
        counts("vfs_gone", 5),
        counts("fs/open.c;inlined", 10),
        counts("../fs/gone.c;do_read", 15),
    )
    defined = {"fs/open.o": ["vfs_read.llvm.7"], "fs/read.o": []}
    assert matched_percent(counted, defined, log_of(tmp_path / "log")) == pytest.approx(80)


def test_a_function_that_was_compiled_twice_is_lost_once(tmp_path: Path) -> None:
    told = (
        "warning: ../fs/open.c: function control flow change detected (hash mismatch) do_open "
        "Hash = 798733566004284333 up to {} count discarded [-Wbackend-plugin]"
    )
    log = log_of(tmp_path / "log", "  CC      fs/open.o", *(told.format(n) for n in (25, 25, 9)))
    counted = (counts("fs/open.c;do_open", 25), counts("vfs_open", 75))
    found = matched_percent(counted, {"fs/open.o": ["vfs_open"]}, log)
    assert found == pytest.approx(75)


def test_a_profile_of_the_same_source_says_nothing() -> None:
    for same in (True, None):
        used = ALGORITHM.use(Path("profile"), Use(CLANG, same_source=same))
        assert "-Wno-backend-plugin" in used.selected[0].cflags
