"""``gcc-pgo``: merging, what ran, and what a build with a profile gets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from mepof.algorithm.gcc_pgo import ALGORITHM
from mepof.algorithm.protocol import Conversion, Round, Use
from mepof.errors import InputError
from mepof.kernel import overlay
from mepof.kernel.build_spec import PROFILES
from mepof.kernel.objects import OBJECTS, objects_of
from mepof.kernel.options import options
from mepof.process import run
from mepof.profile.aging import Decay
from mepof.toolchain import gcda
from mepof.toolchain.gcc import TOOLCHAIN, Gcc
from mepof.toolchain.gcda import Counts, Function
from mepof.toolchain.protocol import Tools


@dataclass(frozen=True)
class Gcc12(Gcc):
    """A version that need not be installed."""

    def version_for(self, arch: object) -> str:
        return "12.2.0"


GCC = Gcc12("-12")
TOOLS = Tools(GCC, run)
VERSION = int.from_bytes(b"B22*", "big")
FILE = "kernel.gcda.tar"
VALUES = """
__attribute__((noinline)) int twice(int n) { return 2 * n; }
int (*volatile called)(int) = twice;
__attribute__((noinline)) int work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += called(i);
    return sum;
}
int main(void) { return work(1000000) == 7; }
"""


def archive(path: Path, ran: int, version: int = VERSION) -> Path:
    """Counts of 400 functions of fs/a.c, of which the first ones ran, and one of idle.c."""
    functions = tuple(Function((n, 2, 3), {0: (int(n < ran), 0)}) for n in range(400))
    idle = Function((9, 9, 9), {0: (0,)})
    files = {
        "fs/a.o": Counts(version, (1, 2), 1, functions),
        "idle.o": Counts(version, (3, 4), 1, (idle,)),
    }
    gcda.write_archive(files, path)
    return path


def converted(tmp_path: Path, ran: int) -> Conversion:
    raw = archive(tmp_path / "raw", ran)
    output = tmp_path / "profile"
    output.mkdir()
    return Conversion((raw,), tmp_path / "build", output, TOOLS)


def test_a_profile_knows_what_ran_and_in_which_objects(tmp_path: Path) -> None:
    given = converted(tmp_path, 350)
    quality = ALGORITHM.convert(given)
    assert (quality.functions, quality.executed, quality.verdict) == (401, 350, "good")
    executed = ALGORITHM.executed(given.output, TOOLS)
    assert len(executed) == 350
    given.build.mkdir()
    (given.build / OBJECTS).write_text('{"fs/a.o": ["f"], "idle.o": ["g"], "b.o": ["h"]}')
    assert objects_of(given.build, executed) == ("fs/a.o",)


def test_a_profile_of_few_functions_is_poor(tmp_path: Path) -> None:
    assert ALGORITHM.convert(converted(tmp_path, 20)).verdict == "poor"


def test_profiles_are_added_by_weight(tmp_path: Path) -> None:
    directories = []
    for name in ("one", "other"):
        directory = tmp_path / name
        directory.mkdir()
        archive(directory / FILE, 350)
        directories.append(directory)
    ALGORITHM.merge(
        [(directories[0], Fraction(2)), (directories[1], Fraction(1, 2))], tmp_path, TOOLS
    )
    assert gcda.read_archive(tmp_path / FILE)["fs/a.o"].max_arc == 5


def test_a_build_that_counts_has_the_configuration_of_the_plain_one() -> None:
    """So what does not run is compiled in the same way; see decision 25."""
    made = ALGORITHM.instrument(GCC, Round())
    assert made.config_lines == ("CONFIG_DEBUG_FS=y",)  # slim and server have it
    assert made.cflags[-1] == "-fplugin=scripts/gcc-plugins/mepof_counts_plugin.so"
    assert made.variables["CONFIG_GCC_PLUGINS"] == "y"


def test_a_build_uses_counts_only_where_something_ran(tmp_path: Path) -> None:
    (tmp_path / "kernel.executed_objects").write_text("fs/a.o\n")
    addition = ALGORITHM.use(tmp_path, Use(GCC, True))
    (selected,) = addition.selected
    assert selected.names() == ["fs/a.o"]
    assert selected.cflags == (
        "-fprofile-use",
        "--param=inline-heuristics-hint-percent=2400",
        "-Wno-missing-profile",
        "-Wno-coverage-mismatch",
        "-fprofile-partial-training",
    )
    assert addition.cflags == ()
    assert addition.variables == {"MEPOF_COUNTS": f"{PROFILES}/{FILE}"}
    (small,) = ALGORITHM.use(tmp_path, Use(GCC, True, cold_small=True)).selected
    assert "-fprofile-partial-training" not in small.cflags


@pytest.mark.parametrize(
    ("suffix", "overlays"), [("-11", ("gcov", "gcov-no-checksum")), ("-12", ("gcov",))]
)
def test_objects_of_older_versions_have_no_checksum(suffix: str, overlays: tuple[str, ...]) -> None:
    assert ALGORITHM.instrument(Gcc(suffix), Round()).overlays == overlays


def test_its_overlays_exist() -> None:
    made = ALGORITHM.instrument(Gcc("-11"), Round())
    used = ALGORITHM.use(Path("profile"), Use(GCC, None))
    for name in (*made.overlays, *used.overlays):
        assert overlay.load(name).edits


def test_a_profile_of_another_compiler_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / FILE, 350, int.from_bytes(b"B30*", "big"))
    ALGORITHM.check_profile({FILE: path}, None)
    with pytest.raises(InputError, match="is of GCC 13, not of gcc-12"):
        ALGORITHM.check_profile({FILE: path}, TOOLS)
    gcda.write_archive({}, path)
    with pytest.raises(InputError, match="has no counts"):
        ALGORITHM.check_profile({FILE: path}, None)


def test_a_profile_is_not_renewed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be renewed"):
        ALGORITHM.renew(
            tmp_path, tmp_path, Decay(Fraction(1, 2), same_source=True), tmp_path, TOOLS
        )


@pytest.mark.parametrize("option", [None, "NoValues"])
def test_counts_are_used_without_values_where_the_option_says_so(
    tmp_path: Path, option: str | None
) -> None:
    (tmp_path / "work.c").write_text(VALUES)
    gcc = TOOLCHAIN.select(None)
    compile_ = [gcc.tool("compiler"), "-O2", "-c", "work.c"]
    run([*compile_, "-fprofile-generate"], cwd=tmp_path)
    run([gcc.tool("compiler"), "-fprofile-generate", "work.o", "-o", "work"], cwd=tmp_path)
    run([tmp_path / "work"], cwd=tmp_path)
    without = options()[option].profiled_cflags if option else ()
    dump = tmp_path / "dump"
    use = (*gcc.flags("use-counts"), *gcc.flags("keep-untrained"), *without)
    run([*compile_, *use, f"-fdump-tree-optimized={dump}"], cwd=tmp_path)
    (work,) = re.findall(r";; Function work (.*?)(?=;; Function|\Z)", dump.read_text(), re.S)
    assert "count: 1000000" in work
    # The call is direct where the target is the most frequent one.
    assert ("== twice" in work) == (option is None)
