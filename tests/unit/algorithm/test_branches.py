"""The algorithms whose raw profile is a recording of branches, on a kernel in miniature."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from writers.recorder_trace import sampled_trace
from writers.traced_kernel import (
    CLANG,
    TEXT,
    Loop,
    link_kernel,
    link_modules,
    loop_of,
    recorded,
    recorded_in_module,
)

from mepof import _engine
from mepof.algorithm.autofdo import AutoFdo
from mepof.algorithm.branches import recorded_modules
from mepof.algorithm.propeller import Propeller, functions
from mepof.algorithm.protocol import ALGORITHMS, EXECUTED_OBJECTS, Conversion, Round, Use
from mepof.errors import InputError, MepofError, WorkError
from mepof.kernel.build_spec import PROFILES
from mepof.kernel.modules import Module, Modules
from mepof.kernel.objects import OBJECTS
from mepof.process import run
from mepof.toolchain.clang import Clang
from mepof.toolchain.protocol import Tools

TOOLCHAIN = Clang("-22" if CLANG.endswith("-22") else "")
TOOLS = Tools(TOOLCHAIN, run)
LINES = ("-g", "-fdebug-info-for-profiling")
OBJECTS_OF = {"init/main.o": ["start_kernel"], "kernel/work.o": ["hot", "warm"], "mm/idle.o": []}
AUTOFDO: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("autofdo", LINES),
    ("autofdo-probe", (*LINES, "-fpseudo-probe-for-profiling")),
)


def autofdo(name: str) -> AutoFdo:
    found = ALGORITHMS.get(name)
    assert isinstance(found, AutoFdo)
    return found


def conversion(directory: Path, *flags: str) -> Conversion:
    """What ran, what was recorded of it, and an empty directory for the profile."""
    (directory / "build").mkdir(parents=True)
    _, loop = link_kernel(directory / "build", *flags)
    (directory / "build" / OBJECTS).write_text(json.dumps(OBJECTS_OF))
    (directory / "raw0").write_text(recorded(loop))
    (directory / "profile").mkdir()
    return Conversion((directory / "raw0",), directory / "build", directory / "profile", TOOLS)


def shown(profile: Path) -> str:
    return _engine.show(profile, 20, 0)


# --- autofdo, autofdo-probe


@pytest.mark.parametrize(("name", "flags"), AUTOFDO)
def test_a_branch_trace_is_converted_to_the_profile_alone(
    tmp_path: Path, name: str, flags: Sequence[str]
) -> None:
    given = conversion(tmp_path, *flags)
    quality = autofdo(name).convert(given)
    (file,) = autofdo(name).profile_names
    assert [path.name for path in given.output.iterdir()] == [file]
    assert '"hot"' in shown(given.output / file)
    assert (quality.functions, quality.executed) == (3, 1)
    assert quality.coverage_percent == 33.33


def test_lines_are_taken_where_there_are_probes_too(tmp_path: Path) -> None:
    given = conversion(tmp_path, *AUTOFDO[1][1])
    autofdo("autofdo").convert(given)
    autofdo("autofdo-probe").convert(given)
    lines, probes = (
        json.loads(shown(given.output / name)) for name in ("kernel.afdo", "kernel.probes")
    )
    assert lines != probes
    with pytest.raises(MepofError):
        _engine.merge(
            [(given.output / "kernel.afdo", 1), (given.output / "kernel.probes", 1)],
            tmp_path / "merged",
            "autofdo",
        )


@pytest.mark.parametrize(("algorithm", "flags"), AUTOFDO)
def test_perfs_own_branches_train_the_modules_of_the_build_that_were_loaded(
    tmp_path: Path, algorithm: str, flags: Sequence[str]
) -> None:
    given = conversion(tmp_path, *flags)
    loop = link_modules(given.build, {"tiny": "busy", "idle": "lazy"}, *flags)
    with given.raw[0].open("a") as file:
        file.write(recorded_in_module(loop, "tiny", 500))
    assert autofdo(algorithm).convert(given).verdict == "good"
    assert autofdo(algorithm).executed(given.output, TOOLS) == {"hot", "busy"}


def test_only_traces_with_addresses_of_modules_are_read_with_them(tmp_path: Path) -> None:
    given = conversion(tmp_path, *LINES)
    tiny = Module(name="tiny", path="drivers/tiny.ko", needs=(), text=1)
    Modules(modules=(tiny,)).write(given.build)
    assert recorded_modules(given.build, given.raw) == (given.build / "modules/tiny.ko",)
    recording = _engine.Recording(given.build / "vmlinux", given.raw)
    _engine.convert(recording, "unsymbolized", tmp_path / "offsets")
    (tmp_path / "own").write_bytes(sampled_trace([[(TEXT, TEXT)]], 100, 16))
    without = (tmp_path / "offsets", tmp_path / "own")
    assert recorded_modules(given.build, without) == ()


def test_a_branch_trace_of_another_kernel_makes_a_poor_profile(tmp_path: Path) -> None:
    given = conversion(tmp_path, *LINES)
    loop = loop_of(given.build / "vmlinux")
    # Most branches come from an instruction that is none.
    elsewhere = Loop(loop.target, loop.target)
    given.raw[0].write_text(recorded(elsewhere) + recorded(loop, 500, mapped=False))
    quality = autofdo("autofdo").convert(given)
    assert quality.verdict == "poor"
    assert quality.reasons
    # It is there to be looked at.
    assert [path.name for path in given.output.iterdir()] == ["kernel.afdo"]


def test_merged_profiles_are_weighed(tmp_path: Path) -> None:
    given = conversion(tmp_path, *LINES)
    algorithm = autofdo("autofdo")
    algorithm.convert(given)
    merged = tmp_path / "merged"
    merged.mkdir()
    weighted = [(given.output, Fraction(1, 2)), (given.output, Fraction(1))]
    quality = algorithm.merge(weighted, merged, TOOLS)
    assert [path.name for path in merged.iterdir()] == ["kernel.afdo"]
    assert quality.functions == quality.executed == 1
    once, sum_ = (
        json.loads(shown(path / "kernel.afdo"))["statistics"]["total"]
        for path in (given.output, merged)
    )
    assert sum_ == 3 * once


@pytest.mark.parametrize(("name", "flags"), AUTOFDO)
def test_both_builds_agree_on_what_identifies_blocks(name: str, flags: Sequence[str]) -> None:
    algorithm = autofdo(name)
    (file,) = algorithm.profile_names
    profiled = algorithm.instrument(TOOLCHAIN, Round())
    used = algorithm.use(Path("/p"), Use(TOOLCHAIN, True))
    assert profiled.config_lines == used.config_lines == ()
    (selected,) = used.selected
    assert selected.objects == Path("/p") / EXECUTED_OBJECTS
    # Flags that keep lines apart are for the kernel that is profiled alone.
    assert "-fno-optimize-sibling-calls" in profiled.cflags
    assert "-fno-optimize-sibling-calls" not in selected.cflags
    # Entry code is marked as not to be instrumented, and nothing is inlined there.
    for same in (
        "-D__no_profile_instrument_function__=__unused__",
        *TOOLCHAIN.flags("discriminators"),
    ):
        assert same in profiled.cflags and same in selected.cflags
    assert f"-fprofile-sample-use={PROFILES}/{file}" in selected.cflags
    assert ("-fpseudo-probe-for-profiling" in selected.cflags) == (name == "autofdo-probe")


@pytest.mark.parametrize("same", [True, False, None])
def test_a_kernel_that_uses_a_profile_has_lines_only_if_drift_is_computed(
    same: bool | None,
) -> None:
    (lines,) = TOOLCHAIN.flags("profiling-lines")
    assert lines in autofdo("autofdo").instrument(TOOLCHAIN, Round()).cflags
    (used,) = autofdo("autofdo").use(Path("/p"), Use(TOOLCHAIN, same)).selected
    assert (lines in used.cflags) == (same is not True)


def test_functions_that_ran_only_inlined_have_the_profile_of_their_callers(tmp_path: Path) -> None:
    given = conversion(tmp_path, *LINES)
    algorithm = autofdo("autofdo")
    algorithm.convert(given)
    executed = algorithm.executed(given.output, TOOLS)
    shown = json.loads(_engine.show(given.output / "kernel.afdo", 1000, 0))["functions"]
    assert executed == {each["name"] for each in shown if each["total"] > 0}
    assert len(executed) == 1


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("cold_small", [True, False])
def test_only_of_an_exact_profile_what_has_no_count_can_be_cold(
    exact: bool, cold_small: bool
) -> None:
    used = autofdo("autofdo").use(Path("/p"), Use(TOOLCHAIN, True, exact, cold_small))
    (selected,) = used.selected
    assert ("-fprofile-sample-accurate" in selected.cflags) == (exact and cold_small)


@pytest.mark.parametrize("same", [True, False, None])
def test_the_compiler_matches_what_is_not_known_to_be_of_the_same_source(same: bool | None) -> None:
    used = autofdo("autofdo").use(Path("/p"), Use(TOOLCHAIN, same))
    (selected,) = used.selected
    assert ("-salvage-stale-profile" in selected.cflags) == (same is not True)


def test_the_match_with_another_kernel_is_reported(tmp_path: Path) -> None:
    given = conversion(tmp_path, *LINES)
    autofdo("autofdo").convert(given)
    drift = autofdo("autofdo").drift(given.output, given.build, given.build / "log", TOOLS)
    assert drift is not None
    assert drift.matched_percent == 100.0
    assert Propeller().drift(given.output, given.build, given.build / "log", TOOLS) is None


@pytest.mark.parametrize(("name", "flags"), AUTOFDO)
def test_spared_functions_are_not_in_the_profile_any_more(
    tmp_path: Path, name: str, flags: Sequence[str]
) -> None:
    given = conversion(tmp_path, *flags)
    algorithm = autofdo(name)
    algorithm.convert(given)
    less = tmp_path / "less"
    for spared, left in ((["warm", "ho"], True), (["hot"], False), ([], True)):
        addition = algorithm.spare(given.output, spared, less, TOOLS)
        tool = TOOLCHAIN.tool("profile-merger")
        text = run([tool, "merge", "--sample", "--text", less, "-o", tmp_path / "text"])
        assert text.status == 0
        assert ("hot:" in (tmp_path / "text").read_text()) == left, spared
        assert addition.profiles == {"less": less}
        assert addition.cflags == (f"-fprofile-sample-use={PROFILES}/less",)


# --- propeller


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile of a layout."""
    given = conversion(tmp_path_factory.mktemp("layout") / "x", "-fbasic-block-address-map")
    quality = Propeller().convert(given)
    assert quality.verdict == "good"
    return given.output


def test_a_branch_trace_is_converted_to_blocks_an_order_and_the_hot_objects(layout: Path) -> None:
    assert {path.name for path in layout.iterdir()} == set(Propeller().profile_names)
    assert functions((layout / "kernel.cc_profile").read_text().splitlines()) == {"hot"}
    assert "hot" in (layout / "kernel.ld_profile").read_text().split()
    assert (layout / "kernel.hot_objects").read_text() == "kernel/work.o\n"


def test_blocks_are_copied_along_paths_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    engine_convert = _engine.convert

    def convert(*given: Any, **more: Any) -> str:
        asked.append(more["path_cloning"])
        return engine_convert(*given, **more)

    monkeypatch.setattr(_engine, "convert", convert)
    for name in ("propeller", "propeller-paths"):
        given = conversion(tmp_path / name, "-fbasic-block-address-map")
        assert ALGORITHMS.get(name).convert(given).verdict == "good"
    assert asked == [False, True]


def test_only_hot_objects_and_the_linker_get_the_layout(layout: Path) -> None:
    profiled = Propeller().instrument(TOOLCHAIN, Round())
    used = Propeller().use(layout, Use(TOOLCHAIN, True))
    assert (used.cflags, used.variables) == (profiled.cflags, profiled.variables) == ((), {})
    assert (used.config_lines, used.overlays) == (profiled.config_lines, profiled.overlays)
    mapped, selected = used.selected
    assert (mapped.names(), mapped.cflags) == (("%",), ("-fbasic-block-address-map",))
    assert profiled.selected[0].cflags == mapped.cflags
    assert list(selected.names()) == ["kernel/work.o"]
    assert selected.cflags[0] == f"-fbasic-block-sections=list={PROFILES}/kernel.cc_profile"
    assert f"--symbol-ordering-file={PROFILES}/kernel.ld_profile" in used.ldflags


def test_a_branch_trace_without_kernel_code_is_an_error() -> None:
    with pytest.raises(WorkError, match="no kernel function was executed"):
        functions(["v1\n"])


CC_PROFILE = """\
v1
f pipe_write
c 0 1 2
c 4
f pipe_read pipe_read.alias
c 0
f vfs_open
p 1 2
c 0 1
"""


@pytest.mark.parametrize(
    ("spared", "left"),
    [
        ([], CC_PROFILE),
        (["pipe"], CC_PROFILE),
        (["pipe_write"], CC_PROFILE.replace("f pipe_write\nc 0 1 2\nc 4\n", "")),
        (["pipe_read.alias"], CC_PROFILE.replace("f pipe_read pipe_read.alias\nc 0\n", "")),
        (["vfs_open", "pipe_read"], "v1\nf pipe_write\nc 0 1 2\nc 4\n"),
        (["pipe_write", "pipe_read", "vfs_open"], "v1\n"),
    ],
)
def test_exactly_the_spared_functions_are_left_out(
    tmp_path: Path, spared: list[str], left: str
) -> None:
    (tmp_path / "kernel.cc_profile").write_text(CC_PROFILE)
    addition = Propeller().spare(tmp_path, spared, tmp_path / "less", TOOLS)
    assert (tmp_path / "less").read_text() == left
    assert addition.profiles == {"less": tmp_path / "less"}
    assert addition.cflags == (f"-fbasic-block-sections=list={PROFILES}/less",)


def test_a_source_file_stays_with_its_function(tmp_path: Path) -> None:
    first, last = "m a.c\nf foo\nc 0\n", "m b.c\nf bar\nc 0 1\nm a.c\nf bar\nc 0 2\n"
    (tmp_path / "kernel.cc_profile").write_text(f"v1\n{first}{last}f baz\nc 3\n")
    for spared, left in (("foo", f"{last}f baz\nc 3\n"), ("bar", f"{first}f baz\nc 3\n")):
        Propeller().spare(tmp_path, [spared], tmp_path / "less", TOOLS)
        assert (tmp_path / "less").read_text() == f"v1\n{left}"


def test_a_spared_layout_is_one_that_the_compiler_reads(layout: Path, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int hot(int n) { return n ? hot(n - 1) : 1; }\n")
    for spared, sections in (([], True), (["hot"], False)):
        Propeller().spare(layout, spared, tmp_path / "less", TOOLS)
        flags = ["-O1", "-c", "-fno-pie", "-fbasic-block-sections=list=less"]
        subprocess.run([CLANG, *flags, "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
        assert (b".text.hot" in (tmp_path / "a.o").read_bytes()) == sections


def test_layouts_are_not_merged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be merged"):
        Propeller().merge([(tmp_path, Fraction(1))], tmp_path, TOOLS)
