"""Find the few candidates that make something fail, by testing subsets of them.

The method is delta debugging: A. Zeller and R. Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", IEEE Transactions on Software Engineering 28(2), 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def smallest_failing(
    candidates: Sequence[str], fails: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """A smallest set of candidates that fails: without any one of them it would not.

    For a single culprit among n it takes about 2 log2(n) trials.

    Args:
        candidates: all of them together fail; the empty set does not.
        fails: whether a subset fails; asked again, it answers the same.
    """
    failing = list(candidates)
    pieces = 2
    while len(failing) > 1:
        size = -(-len(failing) // pieces)
        parts = [failing[at : at + size] for at in range(0, len(failing), size)]
        part = next((part for part in parts if fails(part)), None)
        if part is not None:
            failing, pieces = part, 2
            continue
        # With two parts, each is the rest of the other, and has been tried.
        rests = [[c for c in failing if c not in part] for part in parts] if pieces > 2 else []
        rest = next((rest for rest in rests if fails(rest)), None)
        if rest is not None:
            failing, pieces = rest, max(pieces - 1, 2)
        elif pieces < len(failing):
            pieces = min(2 * pieces, len(failing))
        else:
            break
    return tuple(failing)


def culprits(
    candidates: Sequence[str], fails: Callable[[Sequence[str]], bool], maximum: int
) -> tuple[str, ...] | None:
    """Candidates without which the others do not fail, found one smallest set after another.

    Args:
        candidates, fails: as of :func:`smallest_failing`.
        maximum: how many culprits to find before giving up.

    Returns:
        The culprits, or None if there are more than ``maximum``.
    """
    found: list[str] = []
    others = list(candidates)
    while fails(others):
        found += smallest_failing(others, fails)
        others = [candidate for candidate in others if candidate not in found]
        if len(found) > maximum:
            return None
    return tuple(found)
