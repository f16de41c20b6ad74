"""The values that a program writes: what ``set`` takes, and the weights of ``merge``.

Every reader takes the text of an operand and returns its value, or raises ValueError with
a message for the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

Value = str | int | float | tuple[str, ...] | tuple[int, int]

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def whole_number(text: str, minimum: int, maximum: int) -> int:
    """A whole number from ``minimum`` to ``maximum``."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or not minimum <= int(text) <= maximum:
        raise ValueError(f"a whole number from {minimum} to {maximum} is expected")
    return int(text)


def boots(text: str) -> tuple[int, int]:
    """How many boots, as fewest and most: such as ``8``, or ``5-12``."""
    fewest, dash, most = text.partition("-")
    try:
        found = whole_number(fewest, 1, 1000), whole_number(most if dash else fewest, 1, 1000)
    except ValueError:
        found = (0, 0)
    if not 0 < found[0] <= found[1]:
        raise ValueError("a number from 1 to 1000 or a range such as `5-12` is expected")
    return found


def percent(text: str) -> float:
    """A share in percent, above 0 and up to 100."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text) or not 0 < float(text) <= 100:
        raise ValueError("a percentage such as `1` or `0.5` is expected")
    return float(text)


def duration(text: str) -> int:
    """Seconds, from such as ``90s``, ``30m`` or ``2h``."""
    match = re.fullmatch(r"([0-9]{1,9})([smh])", text)
    if match is None or int(match[1]) == 0:
        raise ValueError("a duration such as `90s`, `30m` or `2h` is expected")
    return int(match[1]) * _SECONDS[match[2]]


def identifier(text: str) -> str:
    """The name of a result."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text):
        raise ValueError("a name is a letter followed by letters, digits, `_` and `-`")
    return text


def config(text: str) -> tuple[str, ...]:
    """Either one path, which contains ``/``, or the names of configs to lay over each other."""
    parts = (text,) if "/" in text else tuple(text.split("+"))
    if "" in parts:
        raise ValueError("configs are joined by `+`, such as `slim+android`")
    return parts


def paths(text: str) -> tuple[str, ...]:
    """Paths, separated by commas."""
    parts = tuple(text.split(","))
    if "" in parts:
        raise ValueError("paths are separated by commas, such as `one.data,two.data`")
    return parts


def names(text: str) -> tuple[str, ...]:
    """Names, separated by commas, or ``none``."""
    if text == "none":
        return ()
    parts = tuple(text.split(","))
    if "" in parts:
        raise ValueError("names are separated by commas, such as `syscall,proc`; or `none`")
    return parts


def weight(text: str) -> Fraction:
    """A positive number, exactly."""
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text) or Fraction(text) == 0:
        raise ValueError("a weight is a positive number such as `2` or `0.5`")
    return Fraction(text)


@dataclass(frozen=True)
class Setting:
    """A key of ``set``.

    Attributes:
        read: the value of a text.
        choices: the field of the vocabulary whose words it takes, if any.
        noun: what such a word is called, if not like the key.
    """

    read: Callable[[str], Value]
    choices: str | None = None
    noun: str | None = None


SETTINGS: Mapping[str, Setting] = {
    "actions": Setting(partial(whole_number, minimum=1, maximum=1_000_000)),
    "arch": Setting(str, "architectures"),
    "budget": Setting(duration),
    "config": Setting(config, "configs"),
    "core": Setting(str, "cores"),
    "depth": Setting(partial(whole_number, minimum=1, maximum=1024)),
    "device": Setting(str, "devices"),
    "name": Setting(identifier),
    "perf-data": Setting(paths),
    "period": Setting(partial(whole_number, minimum=1, maximum=10**9)),
    "precision": Setting(percent),
    "relinked": Setting(partial(whole_number, minimum=0, maximum=100)),
    "repetitions": Setting(boots),
    # It fits the integers of every tool, and so do those of all repetitions.
    "seed": Setting(partial(whole_number, minimum=0, maximum=10**18 - 1)),
    "toolchain": Setting(str, "toolchains"),
    "without": Setting(names, "untrained", "case"),
}
