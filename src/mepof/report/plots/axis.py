"""A horizontal axis: from values to percent of the width, with round ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

Tick = tuple[float, str]
"""Position in percent of the width, and text."""


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high``, drawn from ``left`` to ``right`` percent of the width."""

    low: float
    high: float
    left: float
    right: float

    @classmethod
    def over(cls, values: Iterable[float], left: float, right: float) -> Axis:
        """The axis that spans all values and zero."""
        ends = [0.0, *values]
        low, high = min(ends), max(ends)
        return cls(low, high, left, right) if high > low else cls(-1.0, 1.0, left, right)

    def at(self, value: float) -> float:
        """Where a value is drawn, in percent of the width."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + share * (self.right - self.left), 2)

    def ticks(self, text: Callable[[float, int], str]) -> tuple[Tick, ...]:
        """Round values, about five, zero among them if it is on the axis.

        Args:
            text: formats a value with a number of decimals.
        """
        rough = (self.high - self.low) / 5
        power = 10.0 ** floor(log10(rough))
        step = next(power * f for f in (1, 2, 5, 10) if power * f >= rough)
        decimals = max(0, -floor(log10(step)))
        first, last = ceil(self.low / step), floor(self.high / step)
        return tuple((self.at(i * step), text(i * step, decimals)) for i in range(first, last + 1))


def absolute_percent(value: float, decimals: int) -> str:
    """A difference in percent, of which the axis says whether it is less or more."""
    return plain_percent(abs(value), decimals)


def plain_percent(value: float, decimals: int) -> str:
    """A share in percent."""
    return f"{value:.{decimals}f} %" if value else "0"
