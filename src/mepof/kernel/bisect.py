"""Find the few candidates that make something fail, by testing subsets of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def culprits(
    candidates: Sequence[str], fails: Callable[[Sequence[str]], bool], maximum: int
) -> tuple[str, ...] | None:
    """Candidates without which the others do not fail.

    Each is found by bisection, as in a history of commits: it is the candidate with which those
    before it begin to fail. One among n takes log2(n) trials, and one more shows whether the others
    fail as well. Of candidates that fail only together, one is found.

    Args:
        candidates: their order is free, but those that are suspected belong together.
        fails: whether a subset fails; asked again, it answers the same. The empty set does not.
        maximum: how many culprits to find before giving up.

    Returns:
        The culprits, or None if there are more than ``maximum``.
    """
    found: list[str] = []
    others = list(candidates)
    sound = 0  # so many of the others, from the first, do not fail
    while others and fails(others):
        if len(found) == maximum:
            return None
        failing = len(others)
        while failing - sound > 1:
            middle = (sound + failing) // 2
            if fails(others[:middle]):
                failing = middle
            else:
                sound = middle
        found.append(others.pop(failing - 1))
    return tuple(found)
