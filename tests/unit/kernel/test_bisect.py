"""Finding the few things that make something fail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from mepof.kernel.bisect import culprits


def names(count: int) -> list[str]:
    return [f"{number}.o" for number in range(count)]


class Trials:
    """Fails with every set of which all members are there; keeps what was tried."""

    def __init__(self, *sets: Collection[str]) -> None:
        self.sets = [frozenset(each) for each in sets]
        self.tried: list[tuple[str, ...]] = []

    def __call__(self, using: Sequence[str]) -> bool:
        self.tried.append(tuple(using))
        return any(each <= set(using) for each in self.sets)


@st.composite
def candidates_and_sets(draw: st.DrawFn) -> tuple[list[str], list[frozenset[str]]]:
    """Candidates, and sets of them that each fail: single ones, pairs that interact, more."""
    candidates = names(draw(st.integers(1, 40)))
    sizes = st.integers(1, min(4, len(candidates)))
    sets = draw(
        st.lists(
            sizes.flatmap(
                lambda n: st.frozensets(st.sampled_from(candidates), min_size=n, max_size=n)
            ),
            min_size=1,
            max_size=5,
        )
    )
    return candidates, sets


@given(candidates_and_sets())
def test_each_culprit_is_necessary_for_a_failure(
    given_: tuple[list[str], list[frozenset[str]]],
) -> None:
    candidates, sets = given_
    fails = Trials(*sets)
    found = culprits(candidates, fails, maximum=len(candidates)) or ()
    for number, culprit in enumerate(found):
        before = [c for c in candidates[: candidates.index(culprit)] if c not in found[:number]]
        assert fails([*before, culprit])
        assert not fails(before)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_one_culprit_takes_about_one_trial_a_halving(given_: tuple[int, int]) -> None:
    count, at = given_
    fails = Trials({names(count)[at]})
    assert culprits(names(count), fails, maximum=1) == (names(count)[at],)
    # The first and the last trial ask whether there is one, and whether there is another.
    assert len(fails.tried) <= ceil(log2(count)) + 2


@given(candidates_and_sets())
def test_without_the_culprits_the_others_do_not_fail(
    given_: tuple[list[str], list[frozenset[str]]],
) -> None:
    candidates, sets = given_
    fails = Trials(*sets)
    found = culprits(candidates, fails, maximum=len(candidates))
    assert found is not None
    assert not fails([candidate for candidate in candidates if candidate not in found])
    # Nothing is found that has no part in a failure.
    assert set(found) <= frozenset().union(*sets)
    assert len(set(found)) == len(found)


@given(st.data())
def test_single_culprits_are_found_to_the_last(data: st.DataObject) -> None:
    candidates = names(data.draw(st.integers(1, 60)))
    guilty = data.draw(st.frozensets(st.sampled_from(candidates), max_size=6))
    fails = Trials(*({each} for each in guilty))
    found = culprits(candidates, fails, maximum=6)
    assert found is not None
    assert frozenset(found) == guilty


def test_more_culprits_than_are_looked_for_are_none() -> None:
    guilty = names(100)[::20]
    found = culprits(names(100), Trials(*({g} for g in guilty)), maximum=5)
    assert found is not None
    assert set(found) == set(guilty)
    assert culprits(names(100), Trials(*({g} for g in guilty)), maximum=4) is None


def test_there_is_no_culprit_if_nothing_fails() -> None:
    fails = Trials({"elsewhere.o"})
    assert culprits(names(9), fails, maximum=4) == ()
    assert len(fails.tried) == 1


def test_no_set_is_tried_of_which_the_answer_is_known() -> None:
    fails = Trials({"3.o"}, {"9.o", "40.o"})
    assert culprits(names(64), fails, maximum=2) == ("3.o", "40.o")
    assert all(fails.tried)  # the empty set is known not to fail
    assert len(fails.tried) == len(set(fails.tried))
