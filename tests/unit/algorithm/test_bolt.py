"""``bolt``: what it adds to builds, and what it makes of a branch trace."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel, recorded

from mepof.algorithm.bolt import ALGORITHM
from mepof.algorithm.protocol import EXECUTED_OBJECTS, Conversion, Round, Use
from mepof.errors import InputError
from mepof.kernel.rewriting import profiled_functions
from mepof.process import run
from mepof.profile.aging import Decay
from mepof.toolchain.clang import Clang
from mepof.toolchain.protocol import Tools

TOOLCHAIN = Clang("-22")
TOOLS = Tools(TOOLCHAIN, run)


def test_a_branch_trace_is_converted_to_bolts_own_format(tmp_path: Path) -> None:
    for name in ("build", "profile"):
        (tmp_path / name).mkdir()
    _, loop = link_kernel(tmp_path / "build")
    (tmp_path / "raw0").write_text(recorded(loop))
    profile = tmp_path / "profile"
    given = Conversion((tmp_path / "raw0",), tmp_path / "build", profile, TOOLS)
    quality = ALGORITHM.convert(given)
    assert (quality.verdict, quality.executed) == ("good", 1)
    assert [path.name for path in profile.iterdir()] == list(ALGORITHM.profile_names)
    counts = (profile / "kernel.fdata").read_text()
    assert profiled_functions(counts) == {"hot"}
    ALGORITHM.check_profile({"kernel.fdata": profile / "kernel.fdata"}, TOOLS)


def test_only_the_last_build_is_rewritten_and_both_are_the_same_otherwise(tmp_path: Path) -> None:
    profiled = ALGORITHM.instrument(TOOLCHAIN, Round())
    used = ALGORITHM.use(tmp_path, Use(TOOLCHAIN, True))
    assert profiled.rewriting is not None and profiled.rewriting.counts is None
    assert used.rewriting is not None
    assert used.rewriting.counts == tmp_path / "kernel.fdata"
    assert (profiled.overlays, profiled.selected) == (used.overlays, used.selected)
    assert "bolt" in used.overlays and used.selected == ()


def test_the_compiler_splits_no_function_of_an_algorithm_below(tmp_path: Path) -> None:
    (tmp_path / EXECUTED_OBJECTS).write_text("fs/open.o\n")
    profiled = ALGORITHM.instrument(TOOLCHAIN, Round(executed=tmp_path / EXECUTED_OBJECTS))
    used = ALGORITHM.use(tmp_path, Use(TOOLCHAIN, True))
    assert profiled.selected == used.selected
    (whole,) = used.selected
    assert (whole.names(), whole.cflags) == (["fs/open.o"], ("-fno-split-machine-functions",))


def test_functions_that_fail_are_left_alone_without_another_compilation(tmp_path: Path) -> None:
    assert ALGORITHM.spare(tmp_path, ["pipe_read"], tmp_path / "less", TOOLS).cflags == ()


def test_profiles_are_not_merged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be merged"):
        ALGORITHM.merge([(tmp_path, Fraction(1))], tmp_path, TOOLS)
    with pytest.raises(InputError, match="cannot be merged"):
        ALGORITHM.renew(tmp_path, tmp_path, Decay(Fraction(1), True), tmp_path, TOOLS)


@pytest.mark.parametrize("data", [b"", b"v1\nf hot\n", b"\xff\xfe", b"1 hot 0 1 hot\n"])
def test_what_is_not_bolts_own_format_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.fdata").write_bytes(data)
    with pytest.raises(InputError, match=r"x\.fdata"):
        ALGORITHM.check_profile({"kernel.fdata": tmp_path / "x.fdata"}, None)
