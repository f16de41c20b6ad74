from __future__ import annotations

from math import sqrt

import pytest

from mepof.statistics.difference import Bounded, difference


def test_symmetric_intervals_add_as_variances_do() -> None:
    made = difference(Bounded(10.0, 7.0, 13.0), Bounded(15.0, 11.0, 19.0))
    assert made == Bounded(5.0, 0.0, 10.0)


def test_each_end_comes_from_the_ends_that_matter() -> None:
    """Zou and Donner (2008): the lower limit needs the second's lower and the first's upper."""
    made = difference(Bounded(1.0, 0.5, 3.0), Bounded(2.0, 1.9, 5.0))
    assert made.low == pytest.approx(1.0 - sqrt(0.1**2 + 2.0**2))
    assert made.high == pytest.approx(1.0 + sqrt(3.0**2 + 0.5**2))


def test_exchanging_the_two_mirrors_the_interval() -> None:
    one, other = Bounded(1.0, 0.5, 3.0), Bounded(2.0, 1.9, 5.0)
    made, mirrored = difference(one, other), difference(other, one)
    assert (mirrored.value, mirrored.low, mirrored.high) == (-made.value, -made.high, -made.low)
