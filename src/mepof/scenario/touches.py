"""Touches of a screen, as Android's ``getevent -lt`` writes them, and the script of them.

The events are those of the kernel's multi-touch protocol B
(``Documentation/input/multi-touch-protocol.rst``); of several fingers, the first counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mepof.errors import EnvironmentLack

_EVENT = re.compile(r"^\[ *(\d+\.\d+)\] (/dev/input/\w+): +(\w+) +(\w+) +(\w+)", re.M)
_DEVICE = re.compile(r"^add device \d+: (\S+)", re.M)
_AXIS = r"ABS_MT_POSITION_{axis} +: value \S+, min (-?\d+), max (-?\d+)"
_UP = 0xFFFFFFFF
# Beyond it, a touch is no tap.
_TAP_PIXELS = 20
_TAP_SECONDS = 0.5
# Shorter pauses are the throttle's.
_MIN_WAIT = 0.2


@dataclass(frozen=True)
class TouchScreen:
    """A touch screen: its device, and the coordinates of its left upper and right lower corner."""

    device: str
    low: tuple[int, int]
    high: tuple[int, int]

    def pixel(self, at: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
        """A position on a screen of so many pixels."""
        x, y = (
            (each - low) * pixels // (high - low + 1)
            for each, low, high, pixels in zip(at, self.low, self.high, size, strict=True)
        )
        return x, y


def read_range(text: str, name: str) -> TouchScreen:
    """The touch screen in what ``getevent -lp`` writes.

    Raises:
        EnvironmentLack: there is none.
    """
    starts = [*_DEVICE.finditer(text)]
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        axes = [re.search(_AXIS.format(axis=axis), text[start.end() : end]) for axis in "XY"]
        x, y = axes
        if x is not None and y is not None:
            low, high = (int(x[1]), int(y[1])), (int(x[2]), int(y[2]))
            return TouchScreen(start[1], low, high)
    raise EnvironmentLack(f"{name} has no touch screen that getevent knows", "use another scenario")


def read_touches(text: str, screen: TouchScreen, size: tuple[int, int]) -> tuple[str, ...]:
    """The script of what was touched: taps, swipes, and the pauses between them.

    Args:
        text: of ``getevent -lt``; lines of other devices and broken ones are passed over.
        size: of the screen in pixels.
    """
    lines: list[str] = []
    at = [0, 0]
    began: tuple[float, tuple[int, int]] | None = None
    down = False
    slot = 0
    last: float | None = None
    for found in _EVENT.finditer(text):
        seconds, device, kind, code, word = float(found[1]), found[2], found[3], found[4], found[5]
        if device != screen.device:
            continue
        if code == "ABS_MT_SLOT":
            slot = int(word, 16)
        elif slot:
            continue
        elif code == "ABS_MT_TRACKING_ID":
            down = int(word, 16) != _UP
        elif code in ("ABS_MT_POSITION_X", "ABS_MT_POSITION_Y"):
            at["XY".index(code[-1])] = int(word, 16)
        elif kind == "EV_SYN":
            here = screen.pixel((at[0], at[1]), size)
            if down and began is None:
                if last is not None and seconds - last >= _MIN_WAIT:
                    lines.append(f"wait {round((seconds - last) * 1000)}")
                began = seconds, here
            elif not down and began is not None:
                lines.append(_line(began[1], here, seconds - began[0]))
                began, last = None, seconds
    return tuple(lines)


def _line(start: tuple[int, int], end: tuple[int, int], seconds: float) -> str:
    moved = max(abs(a - b) for a, b in zip(start, end, strict=True))
    if moved <= _TAP_PIXELS and seconds <= _TAP_SECONDS:
        return f"tap {start[0]} {start[1]}"
    return f"swipe {start[0]} {start[1]} {end[0]} {end[1]} {max(1, round(seconds * 1000))}"
