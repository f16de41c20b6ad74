"""``gcc-autofdo``: what is recorded of a kernel by GCC becomes a profile that GCC reads."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from writers.traced_kernel import SOURCE, link_kernel, recorded

from mepof import _engine
from mepof.algorithm.gcc_autofdo import ALGORITHM
from mepof.algorithm.protocol import EXECUTED_OBJECTS, Conversion, Round, Use
from mepof.errors import InputError
from mepof.kernel.build_spec import PROFILES
from mepof.kernel.objects import OBJECTS, objects_of
from mepof.process import run
from mepof.profile.aging import Decay
from mepof.toolchain.gcc import TOOLCHAIN, Gcc
from mepof.toolchain.protocol import Tools

GCC = TOOLCHAIN.select(None)
TOOLS = Tools(GCC, run)
FILE = "kernel.gcov"
# Several blocks in one line, which GCC numbers.
ONE_LINE = """
__attribute__((noinline)) int hot(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i & 1 ? i : sum ^ i;
    return sum;
}
int start_kernel(void) { return hot(1000); }
"""


@dataclass(frozen=True)
class Other(Gcc):
    """A version that is not installed."""

    number: str = ""

    def version_for(self, arch: object) -> str:
        return self.number


def conversion(directory: Path, tools: Tools = TOOLS, source: str = SOURCE) -> Conversion:
    """What ran, what was recorded of it, and an empty directory for the profile."""
    for name in ("build", "profile"):
        (directory / name).mkdir(parents=True)
    flags = (*ALGORITHM.instrument(GCC, Round()).cflags, "-g1")
    given = [flag for flag in flags if not flag.startswith("$")]
    compiler = GCC.tool("compiler")
    _, loop = link_kernel(directory / "build", *given, source=source, compiler=compiler)
    (directory / "raw0").write_text(recorded(loop))
    return Conversion((directory / "raw0",), directory / "build", directory / "profile", tools)


def profile_of(directory: Path, text: str) -> Path:
    """A profile of a text form; its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "text").write_text(text)
    _engine.merge([(directory / "text", 1)], directory / FILE, "gcov")
    (directory / "text").unlink()
    return directory


def as_text(profile: Path) -> str:
    output = profile.parent / "as-text"
    _engine.merge([(profile, 1)], output, "autofdo-text")
    return output.read_text()


def test_a_branch_trace_is_converted_to_the_profile_alone(tmp_path: Path) -> None:
    given = conversion(tmp_path)
    quality = ALGORITHM.convert(given)
    assert [path.name for path in given.output.iterdir()] == [FILE]
    assert (quality.functions, quality.executed) == (3, 1)
    assert ALGORITHM.executed(given.output, TOOLS) == {"hot"}


def test_the_compiler_reads_the_profile(tmp_path: Path) -> None:
    given = conversion(tmp_path)
    ALGORITHM.convert(given)
    (used,) = ALGORITHM.use(given.output, Use(GCC, True)).selected
    flags = [flag.replace(f"{PROFILES}/", f"{given.output}/") for flag in used.cflags]
    source = next(given.build.glob("*.c"))
    dump = tmp_path / "dump"
    command = [GCC.tool("compiler"), "-O2", *flags, f"-fdump-tree-optimized-blocks-details={dump}"]
    subprocess.run([*command, "-c", source, "-o", tmp_path / "o"], check=True)
    counts = {
        name: max(map(int, re.findall(r"count (\d+) \(auto FDO[,)]", function)), default=0)
        for name, function in re.findall(
            r";; Function (\w+)(.*?)(?=;; Function|\Z)", dump.read_text(), re.S
        )
    }
    assert counts["hot"] > 1000
    assert counts["warm"] == 0


def test_blocks_of_a_line_are_told_apart_where_the_compiler_looks_them_up(tmp_path: Path) -> None:
    for number, apart in (("12.2.0", False), ("13.2.0", True)):
        given = conversion(tmp_path / number, Tools(Other("", number), run), ONE_LINE)
        ALGORITHM.convert(given)
        assert bool(re.search(r"^ \d+\.\d+: ", as_text(given.output / FILE), re.M)) == apart


def test_a_compiler_gets_the_version_of_the_format_that_it_reads(tmp_path: Path) -> None:
    for number, version in (("12.2.0", 2), ("15.3.0", 2), ("16.1.0", 3)):
        given = conversion(tmp_path / number, Tools(Other("", number), run))
        ALGORITHM.convert(given)
        head = (given.output / FILE).read_bytes()[:8]
        assert (head[:4], int.from_bytes(head[4:], "little")) == (b"adcg", version)


def test_a_compiler_that_reads_another_form_is_refused(tmp_path: Path) -> None:
    given = conversion(tmp_path, Tools(Other("-11", "11.4.0"), run))
    with pytest.raises(InputError, match="gcc-11 reads AutoFDO profiles of another format"):
        ALGORITHM.convert(given)


def test_what_is_not_in_the_profile_is_not_cold_for_any_version() -> None:
    for number, flags in (("15.3.0", ()), ("16.1.0", ("-fprofile-partial-training",))):
        used = ALGORITHM.use(Path("/p"), Use(Other("", number), True))
        assert used.selected[0].cflags[2:] == flags
        used = ALGORITHM.use(Path("/p"), Use(Other("", number), True, cold_small=True))
        assert used.selected[0].cflags[2:] == ()


def test_what_ran_is_found_under_the_names_of_copies(tmp_path: Path) -> None:
    defined = {"fs/a.o": ["f.isra.0", "f.cold"], "fs/b.o": ["g.part.0"], "c.o": ["h"]}
    (tmp_path / OBJECTS).write_text(json.dumps(defined))
    assert objects_of(tmp_path, {"f", "h"}) == ("c.o", "fs/a.o")


def test_a_build_uses_the_profile_only_where_something_ran() -> None:
    used = ALGORITHM.use(Path("/p"), Use(GCC, True))
    (selected,) = used.selected
    assert selected.objects == Path("/p") / EXECUTED_OBJECTS
    assert selected.cflags[0] == f"-fauto-profile={PROFILES}/{FILE}"
    profiled = ALGORITHM.instrument(GCC, Round())
    for addition in (used, profiled):
        assert (addition.overlays, addition.config_lines, dict(addition.variables)) == ((), (), {})
    assert used.cflags == ()


def test_without_the_profile_a_file_does_not_get_the_flags() -> None:
    used = ALGORITHM.use(Path("/p"), Use(GCC, True))
    (selected,) = used.selected
    assert (selected.but, used.opt_out) == ((), ())
    assert selected.except_for(("fs/%",)).except_for(("mm/a.o",)).but == ("fs/%", "mm/a.o")


def test_functions_of_which_only_copies_ran_are_dropped(tmp_path: Path) -> None:
    text = "hot:12:2\n 1: 2\n 2: idle:10\n  1: 10\nidle:0:0\n 1: 0\n"
    profile = profile_of(tmp_path, text)
    ALGORITHM.drop_unexecuted(profile, TOOLS)
    assert [path.name for path in profile.iterdir()] == [FILE]
    left = as_text(profile / FILE)
    assert left == "hot:12:2\n 1: 2\n 2: idle:10\n  1: 10\n"


def test_spared_functions_are_not_in_the_profile_any_more(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "hot:2:2\n 1: 2\nwarm:1:1\n 1: 1\n")
    less = tmp_path / "less"
    addition = ALGORITHM.spare(profile, ["warm.isra.0"], less, TOOLS)
    assert as_text(less) == "hot:2:2\n 1: 2\n"
    assert addition.profiles == {"less": less}
    assert addition.cflags[0] == f"-fauto-profile={PROFILES}/less"


def test_profiles_are_added_by_weight_and_renewed(tmp_path: Path) -> None:
    new = profile_of(tmp_path / "new", "hot:4:4\n 1: 4\n")
    old = profile_of(tmp_path / "old", "hot:2:2\n 1: 2\nwarm:2:2\n 1: 2\n")
    weighted = [(new, Fraction(1, 2)), (old, Fraction(1))]
    ALGORITHM.merge(weighted, tmp_path, TOOLS)
    assert as_text(tmp_path / FILE) == "hot:8:8\n 1: 8\nwarm:4:4\n 1: 4\n"
    decay = Decay(Fraction(1, 2), same_source=True)
    _, left = ALGORITHM.renew(new, old, decay, tmp_path, TOOLS)
    assert left.kept == 2
    assert json.loads(_engine.show(tmp_path / FILE, 1, 0))["format"] == "gcov"
    assert as_text(tmp_path / FILE) == "hot:5:5\n 1: 5\nwarm:1:1\n 1: 1\n"


def test_a_profile_for_clang_is_refused(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "hot:2:2\n 1: 2\n")
    ALGORITHM.check_profile({FILE: profile / FILE}, TOOLS)
    other = tmp_path / "kernel.afdo"
    _engine.merge([(profile / FILE, 1)], other, "autofdo")
    with pytest.raises(InputError, match="is a profile for Clang, not for GCC"):
        ALGORITHM.check_profile({FILE: other}, None)


def test_a_profile_for_another_version_of_gcc_is_refused(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, "hot:2:2\n 1: 2\n")
    newer = tmp_path / "newer.gcov"
    _engine.merge([(profile / FILE, 1)], newer, "gcov-16")
    with pytest.raises(InputError, match="is for another version of GCC than gcc") as caught:
        ALGORITHM.check_profile({FILE: newer}, TOOLS)
    assert "--to gcov -o" in str(caught.value.remedy)
    ALGORITHM.check_profile({FILE: newer}, Tools(Other("-16", "16.1"), TOOLS.run))
    ALGORITHM.check_profile({FILE: newer}, None)
