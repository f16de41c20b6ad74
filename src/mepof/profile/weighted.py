"""Profiles with weights, as the command line names them: ``A:2``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path

from mepof.disk import existing
from mepof.errors import InputError

_WEIGHT = re.compile(r"\d+(?:\.\d+)?")
_MAX_WEIGHT = 2**64 - 1
# Of a weight, as it is written.
_MAX_DIGITS = 40


@dataclass(frozen=True)
class Weighted:
    """A profile and the factor of its counts."""

    path: Path
    weight: Fraction


def parse_weighted(text: str) -> Weighted:
    """Read ``PATH`` or ``PATH:WEIGHT``; a file whose name is the whole text is meant instead.

    Raises:
        InputError: the weight is not a number, zero, or too long.
    """
    path, colon, weight = text.rpartition(":")
    is_number = _WEIGHT.fullmatch(weight) is not None
    file = existing(path) if path else None
    if not colon or not path or existing(text) or not (file or is_number):
        return Weighted(Path(text), Fraction(1))
    if file is not None and file.is_dir():
        raise InputError(
            f"{path} is a directory, and takes no weight",
            "give its profiles one: --weigh 'PATTERN=N'",
        )
    if not is_number:
        raise InputError(
            f"`{weight}` is not a weight of {path}", "write a positive number, such as 2 or 0.5"
        )
    if len(weight) > _MAX_DIGITS:
        raise InputError(
            f"the weight of {path} has more than {_MAX_DIGITS} digits", "give a shorter one"
        )
    if Fraction(weight) == 0:
        raise InputError(f"the weight of {path} is 0", "leave it out, or give it a positive weight")
    return Weighted(Path(path), Fraction(weight))


def whole(weights: Sequence[Fraction]) -> list[int]:
    """The weights times the smallest number that makes all of them whole, because counts are whole.

    Raises:
        InputError: one of them then exceeds 64 bits.
    """
    return _within_limit(_scaled(weights))


def whole_weights(weights: Sequence[Fraction]) -> list[int]:
    """The smallest whole numbers in the same proportions; compilers' tools take no others.

    Raises:
        InputError: they are so far apart that one exceeds 64 bits.
    """
    scaled = _scaled(weights)
    return _within_limit([weight // gcd(*scaled) for weight in scaled])


def _scaled(weights: Sequence[Fraction]) -> list[int]:
    scale = lcm(*(weight.denominator for weight in weights))
    return [int(weight * scale) for weight in weights]


def _within_limit(weights: list[int]) -> list[int]:
    if max(weights) > _MAX_WEIGHT:
        raise InputError("the weights of the profiles are too far apart", "use fewer digits")
    return weights
