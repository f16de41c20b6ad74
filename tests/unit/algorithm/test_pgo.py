"""``pgo``: weights, merging, and whether a profile is any good."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.algorithm.pgo import ALGORITHM
from mepof.algorithm.protocol import Conversion, Round, Use
from mepof.device.agent import Get, Put
from mepof.errors import InputError, WorkError
from mepof.kernel import overlay
from mepof.kernel.build_spec import PROFILES
from mepof.process import Completed, run
from mepof.profile.counts import read_counts
from mepof.profile.instrumentation import quality_of
from mepof.profile.weighted import whole_weights
from mepof.toolchain.clang import Clang, count_functions
from mepof.toolchain.protocol import FunctionCount, Tools

# Under all the names that they may have, and functions with similar ones.
LEFT_OUT = ("pipe_write", "pipe.c;pipe_write", "pipe.c:pipe_write", "memcpy.isra.0")
KEPT = ("my_pipe_write", "pipe_write_end", "memcpyXisra.0")

weights = st.lists(
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000),
    min_size=1,
    max_size=5,
)


@given(weights)
def test_whole_weights_keep_the_proportions(given_weights: list[Fraction]) -> None:
    whole = whole_weights(given_weights)
    assert all(isinstance(weight, int) and weight >= 1 for weight in whole)
    assert [Fraction(weight, whole[0]) for weight in whole] == [
        weight / given_weights[0] for weight in given_weights
    ]


@given(weights, st.fractions(min_value=Fraction(1, 99), max_value=99, max_denominator=99))
def test_only_proportions_count(given_weights: list[Fraction], factor: Fraction) -> None:
    assert whole_weights([w * factor for w in given_weights]) == whole_weights(given_weights)


def test_whole_weights_are_the_smallest() -> None:
    assert whole_weights([Fraction(2), Fraction(1), Fraction("0.5")]) == [4, 2, 1]
    assert whole_weights([Fraction(6), Fraction(4)]) == [3, 2]
    assert whole_weights([Fraction("0.1")]) == [1]


def test_weights_beyond_what_the_tool_can_hold_are_refused() -> None:
    assert whole_weights([Fraction(2**64 - 1), Fraction(1)]) == [2**64 - 1, 1]
    with pytest.raises(InputError, match="too far apart"):
        whole_weights([Fraction(10**18), Fraction(1, 10**18)])


def shown(total: int, idle: int) -> str:
    """What ``llvm-profdata show --value-cutoff=1`` prints (LLVM 22)."""
    return (
        "Instrumentation level: IR  entry_first = 0  instrument_loop_entries = 0\n"
        f"Total functions: {total}\nMaximum function count: 9\nTotal count: 99\n"
        f"Number of functions with maximum count (< 1): {idle}\n"
        f"Number of functions with maximum count (>= 1): {total - idle}"
    )


def test_a_profile_of_many_functions_is_good() -> None:
    quality = quality_of(count_functions(shown(20000, 15000)))
    assert (quality.functions, quality.executed, quality.verdict) == (20000, 5000, "good")
    assert quality.coverage_percent == 25.0
    assert quality.reasons == ()


@pytest.mark.parametrize(
    ("text", "executed", "known"),
    [
        (shown(20000, 19990), 10, 20000),
        (shown(2000, 1901), 99, 2000),
        (shown(0, 0), 0, 0),
        ("", 0, 0),
    ],
)
def test_a_profile_of_few_functions_is_poor_and_says_why(
    text: str, executed: int, known: int
) -> None:
    quality = quality_of(count_functions(text))
    assert quality.verdict == "poor"
    assert quality.reasons == (f"only {executed} of {known} instrumented functions ran",)


@pytest.mark.parametrize(("known", "executed"), [(900, 240), (2000, 100), (3, 1), (20000, 300)])
def test_a_profile_is_rated_by_what_was_instrumented(known: int, executed: int) -> None:
    quality = quality_of(FunctionCount(known, executed))
    assert (quality.verdict, quality.reasons) == ("good", ())


class Tool:
    """Records the calls of a runner and answers them."""

    def __init__(self, *outputs: str, fails: str = "") -> None:
        self.calls: list[list[str]] = []
        self.outputs = list(outputs)
        self.fails = fails

    def __call__(self, argv: list[object]) -> Completed:
        self.calls.append([str(word) for word in argv])
        if self.fails:
            raise WorkError(self.fails)
        return Completed((), 0, self.outputs.pop(0))


def test_a_merge_hands_the_weights_to_the_tool_of_the_toolchain(tmp_path: Path) -> None:
    tool = Tool("", shown(20000, 0))
    weighted = [(tmp_path / "a b", Fraction(1)), (tmp_path / "c", Fraction("0.5"))]
    quality = ALGORITHM.merge(weighted, tmp_path / "out", Tools(Clang("-22"), tool))
    assert tool.calls[0][:2] == ["llvm-profdata-22", "merge"]
    assert tool.calls[0][-3:] == [
        f"--output={tmp_path}/out/kernel.profdata",
        f"--weighted-input=2,{tmp_path}/a b/kernel.profdata",
        f"--weighted-input=1,{tmp_path}/c/kernel.profdata",
    ]
    assert tool.calls[1][-1] == f"{tmp_path}/out/kernel.profdata"
    assert quality.verdict == "good"


def write_counts(path: Path, *functions: str) -> None:
    """Write a profile as text in which each function ran five times."""
    record = "# Func Hash:\n7\n# Num Counters:\n1\n# Counter Values:\n5\n"
    path.write_text(":ir\n" + "".join(f"{name}\n{record}\n" for name in functions))


def test_functions_that_ran_stay_without_traces_of_when(tmp_path: Path) -> None:
    record = "# Func Hash:\n7\n# Num Counters:\n1\n# Counter Values:\n"
    traces = ":temporal_prof_traces\n# Num Temporal Profile Traces:\n1\n"
    traces += "# Temporal Profile Trace Stream Size:\n1\n# Weight:\n1\nran,\n\n"
    given, out = tmp_path / "given", tmp_path / "out"
    given.write_text(f":ir\n{traces}ran\n{record}5\n\nidle\n{record}0\n\n")
    Clang("-22").drop_unexecuted(given, out, run)
    assert Clang("-22").merge_profiles([(out, 1)], tmp_path / "sum", run) == FunctionCount(1, 1)


def test_the_error_for_an_unreadable_profile_names_the_usual_cause(tmp_path: Path) -> None:
    failing = Tools(Clang(""), Tool(fails="llvm-profdata failed"))
    with pytest.raises(WorkError, match="cannot be read: llvm-profdata failed") as caught:
        ALGORITHM.convert(Conversion((tmp_path,), tmp_path, tmp_path, failing))
    assert "same compiler version" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        (b"PERFILE2", "mepof profile convert"),
        (b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8", "use it with `autofdo`, by the name of NAME.afdo"),
        (b"text", "text too, is named NAME.afdo"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_to_do(
    tmp_path: Path, head: bytes, remedy: str
) -> None:
    given = tmp_path / "x.profdata"
    given.write_bytes(head + bytes(99))
    with pytest.raises(InputError, match="is not an instrumentation profile") as caught:
        ALGORITHM.check_profile({"kernel.profdata": given}, None)
    assert remedy in str(caught.value.remedy)


def test_it_resets_before_and_reads_after_the_same_directory() -> None:
    (reset,), (read,) = ALGORITHM.reset(), ALGORITHM.collect(modules=False)
    assert isinstance(reset, Put) and isinstance(read, Get)
    assert reset.path.rpartition("/")[0] == read.path.rpartition("/")[0]
    again, of_modules = ALGORITHM.collect(modules=True)
    assert again == read
    assert isinstance(of_modules, Get) and of_modules.path.endswith("/modules.profraw")
    assert of_modules.path.rpartition("/")[0] == read.path.rpartition("/")[0]


def test_the_instrumented_build_has_the_run_time_that_the_flags_need() -> None:
    addition = ALGORITHM.instrument(Clang("-22"), Round())
    assert "-fprofile-instrument=llvm" in addition.cflags
    assert [overlay.load(name).name for name in addition.overlays] == ["pgo"]
    assert [overlay.load(name).name for name in addition.module_overlays] == ["pgo-modules"]


def test_a_build_with_the_profile_names_it_and_a_file_can_do_without() -> None:
    used = ALGORITHM.use(Path("/p"), Use(Clang(""), True))
    assert used.profiles == {"kernel.profdata": Path("/p/kernel.profdata")}
    (flags,) = used.selected
    assert f"-fprofile-use={PROFILES}/kernel.profdata" in flags.cflags
    assert used.cflags == ()
    assert used.opt_out == ("-fno-profile-use",)
    assert used.overlays == ("objtool-warn",)


def test_some_functions_are_left_out_under_all_their_names(tmp_path: Path) -> None:
    tool = Tool("")
    spared = ALGORITHM.spare(
        tmp_path, ["pipe_write", "memcpy.isra.0"], tmp_path / "less", Tools(Clang("-22"), tool)
    )
    (command,) = tool.calls
    (option,) = (word for word in command if word.startswith("--no-function="))
    pattern = re.compile(option.removeprefix("--no-function="))
    for left_out in LEFT_OUT:
        assert pattern.fullmatch(left_out), left_out
    for kept in KEPT:
        assert not pattern.search(kept), kept
    assert command[:3] == ["llvm-profdata-22", "merge", "--instr"]
    assert command[-1] == str(tmp_path / "less")
    assert spared.profiles == {"less": tmp_path / "less"}
    assert spared.cflags == (f"-fprofile-use={PROFILES}/less",)


class Older(Clang):
    """A Clang whose merger takes no `--no-function`."""

    major = 16


def test_an_older_clang_leaves_out_the_same_functions(tmp_path: Path) -> None:
    older = Older("-22")
    write_counts(tmp_path / "kernel.profdata", *LEFT_OUT, *KEPT)
    functions = ["pipe_write", "memcpy.isra.0"]
    ALGORITHM.spare(tmp_path, functions, tmp_path / "less", Tools(older, run))
    assert older.executed(tmp_path / "less", run) == set(KEPT)


def test_static_functions_are_named_alike_whichever_clang_counted(tmp_path: Path) -> None:
    given = tmp_path / "given"
    write_counts(given, "../fs/pipe.c:pipe_write", "../fs/open.c;do_open", "main")
    names = {"../fs/pipe.c;pipe_write", "../fs/open.c;do_open", "main"}
    assert Clang("-22").executed(given, run) == names
    assert {each.name for each in read_counts(given)} == names
