"""``hot-pgo``: what it keeps of a profile, and that mepof finds it."""

from __future__ import annotations

import pytest
from mepof_hot_pgo import ALGORITHM, hottest

from mepof.algorithm.protocol import ALGORITHMS


def function(name: str, *counters: int) -> str:
    """A function in the text form of ``llvm-profdata``."""
    values = "".join(f"{counter}\n" for counter in counters)
    return (
        f"{name}\n# Func Hash:\n9\n# Num Counters:\n{len(counters)}\n# Counter Values:\n{values}\n"
    )


HEAD = "# IR level Instrumentation Flag\n:ir\n"
RARE, HOT, IDLE, WARM = (
    function("rare", 1, 0),
    function("fs/pipe.c;hot", 900, 60),
    function("idle", 0),
    function("warm", 39),
)


@pytest.mark.parametrize(
    ("percent", "kept"), [(96, HOT), (97, HOT + WARM), (99, HOT + WARM), (100, HOT + WARM + RARE)]
)
def test_the_hottest_functions_are_kept(percent: int, kept: str) -> None:
    assert hottest(HEAD + RARE + HOT + IDLE + WARM, percent) == HEAD + kept


def test_a_profile_in_which_nothing_ran_has_no_functions() -> None:
    assert hottest(HEAD + IDLE) == HEAD


def test_mepof_finds_it() -> None:
    assert ALGORITHMS.get("hot-pgo") is ALGORITHM
