"""Values in a program: those of ``set``, and the weights of ``merge``.

Every reader turns the text of an operand into its value, or raises ValueError with a message
for the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from mepof.g4.instrumentation import (
    EVERYTHING,
    NO_HOTNESS,
    Instrumentation,
    instrumentation,
    tree_path,
)
from mepof.kernel import kconfig
from mepof.plan.model import Input

Value = (
    str
    | bool
    | int
    | float
    | Fraction
    | tuple[str, ...]
    | tuple[int, int]
    | tuple[str, str | None]
    | Instrumentation
)

#: The value of ``package`` that makes none.
NO_PACKAGE = "none"

#: The value of ``base`` by which profiling begins with a kernel without a profile again.
NO_BASE = "none"

#: The settings that name a profile, and the values by which they name none.
NO_PROFILE = {"base": NO_BASE, "hotness": NO_HOTNESS}

#: Of a name, in letters: file systems take 255 bytes, and a result's files have longer names.
MAX_NAME = 100

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def whole_number(text: str, minimum: int, maximum: int) -> int:
    """A whole number from ``minimum`` to ``maximum``."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or not minimum <= int(text) <= maximum:
        raise ValueError(f"expected a whole number from {minimum} to {maximum}")
    return int(text)


def boots(text: str) -> tuple[int, int]:
    """The minimum and maximum number of boots, from ``8`` or ``5-12``."""
    minimum, dash, maximum = text.partition("-")
    try:
        found = (
            whole_number(minimum, 1, 1000),
            whole_number(maximum if dash else minimum, 1, 1000),
        )
    except ValueError:
        found = (0, 0)
    if not 0 < found[0] <= found[1]:
        raise ValueError("expected a number from 1 to 1000, or a range such as `5-12`")
    return found


def percent(text: str) -> float:
    """A percentage above 0 and up to 100."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text) or not 0 < float(text) <= 100:
        raise ValueError("expected a percentage up to 100, such as `1` or `0.5`")
    return float(text)


def signed_percent(text: str) -> float:
    """A change in percent, of either sign."""
    if not re.fullmatch(r"[+-]?[0-9]{1,3}(\.[0-9]{1,9})?", text):
        raise ValueError("expected a percentage such as `8`, `0.5` or `-1`")
    return float(text) + 0.0  # no negative zero


def duration(text: str) -> int:
    """Seconds, from a duration such as ``90s``, ``30m`` or ``2h``."""
    match = re.fullmatch(r"([0-9]{1,9})([smh])", text)
    if match is None or int(match[1]) == 0:
        raise ValueError("expected a duration such as `90s`, `30m` or `2h`")
    return int(match[1]) * _SECONDS[match[2]]


def identifier(text: str) -> str:
    """The name of a result."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text):
        raise ValueError("a name begins with a letter, followed by letters, digits, `_` or `-`")
    if len(text) > MAX_NAME:
        raise ValueError(f"a name has at most {MAX_NAME} letters: files are called by it")
    return text


def config(text: str) -> tuple[str, ...]:
    """The configs to merge in order: names, and paths, which contain ``/``.

    A path may contain ``+``: after it, only what begins a path or is a config's name is another.
    """
    found = re.fullmatch(r"(?P<names>(?:[^+/]+\+)*)(?P<last>[^+/]+|[^+/]*/.*)", text)
    if found is None:
        raise ValueError("join configs with `+`, as in `slim+android` or `slim+./my.config`")
    known = "|".join(kconfig.names())
    last = re.split(rf"(?<!\+)\+(?=\.{{0,2}}/|(?:{known})(?:\+|$))", found["last"])
    return (*found["names"].split("+")[:-1], *last)


def paths(text: str) -> tuple[str, ...]:
    """Paths, separated by commas."""
    parts = tuple(text.split(","))
    if "" in parts:
        raise ValueError("separate paths with commas, as in `one.data,two.data`")
    return parts


def names(text: str) -> tuple[str, ...]:
    """Names, separated by commas, or ``none``."""
    if text == "none":
        return ()
    parts = tuple(text.split(","))
    if "" in parts:
        raise ValueError("separate names with commas, as in `syscall,proc`, or write `none`")
    return parts


def exclusions(text: str) -> tuple[str, ...]:
    """Files, directories and patterns of files in a kernel tree, sorted, or ``none``."""
    if text == "none":
        return ()
    parts = text.split(",")
    for part in parts:
        if not part:
            raise ValueError("separate files with commas, as in `kernel/fork.o,drivers/gpu/`")
        tree_path(part)
    return tuple(sorted(set(parts)))


def decay(text: str) -> Fraction:
    """A number from 0 to 1, as an exact fraction."""
    if not re.fullmatch(r"[01](\.[0-9]{1,18})?", text) or Fraction(text) > 1:
        raise ValueError("expected a number from 0 to 1, such as `0.5`")
    return Fraction(text)


def switch(text: str) -> bool:
    """``on`` or ``off``."""
    if text not in ("on", "off"):
        raise ValueError("expected `on` or `off`")
    return text == "on"


def dropping(text: str) -> bool:
    """Whether options that do not take effect are noted: ``note`` or ``refuse``."""
    if text not in ("note", "refuse"):
        raise ValueError("expected `refuse` or `note`")
    return text == "note"


def weight(text: str) -> Fraction:
    """A positive number, as an exact fraction."""
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", text) or Fraction(text) == 0:
        raise ValueError("a weight is a positive number such as `2` or `0.5`")
    return Fraction(text)


def toolchain(text: str) -> str:
    """A toolchain by its name, or by its family and, after a colon, the directory that it is in:
    with its whole path, since other machines may use it."""
    family, colon, directory = text.partition(":")
    if colon and not directory:
        raise ValueError(f"the directory is missing after the colon: `{family}:/opt/llvm`")
    return f"{family}:{Path(directory).absolute()}" if colon else text


def family_of(toolchain: str) -> str:
    """The name of a toolchain without the directory that it is in."""
    return toolchain.partition(":")[0]


def packaging(text: str) -> tuple[str, str | None]:
    """A format of packages, and the file after its colon."""
    name, colon, file = text.partition(":")
    if colon and not file:
        raise ValueError(f"the file is missing after the colon: `{name}:./boot.img`")
    return name, file or None


@dataclass(frozen=True)
class Setting:
    """A key of ``set``.

    Attributes:
        read: parses the text of the value.
        choices: the field of the vocabulary that lists its values, if any.
        noun: what messages call such a value, if not by the key.
    """

    read: Callable[[str], Value]
    choices: str | None = None
    noun: str | None = None


SETTINGS: Mapping[str, Setting] = {
    "actions": Setting(partial(whole_number, minimum=1, maximum=1_000_000)),
    "arch": Setting(str, "architectures"),
    "base": Setting(str),
    "budget": Setting(duration),
    "config": Setting(config, "configs"),
    "core": Setting(str, "cores"),
    "cpus": Setting(partial(whole_number, minimum=1, maximum=8)),
    "decay": Setting(decay),
    "depth": Setting(partial(whole_number, minimum=1, maximum=1024)),
    "device": Setting(str, "devices"),
    "dropped": Setting(dropping),
    "exclude": Setting(exclusions),
    "hotness": Setting(str),
    "instrument": Setting(instrumentation),
    "name": Setting(identifier),
    "package": Setting(packaging),
    "perf-data": Setting(paths),
    "period": Setting(partial(whole_number, minimum=1, maximum=10**9)),
    "precision": Setting(percent),
    "relinked": Setting(partial(whole_number, minimum=0, maximum=100)),
    "repetitions": Setting(boots),
    "revision": Setting(partial(whole_number, minimum=1, maximum=10**9)),
    "rounds": Setting(partial(whole_number, minimum=1, maximum=64)),
    "scout": Setting(switch),
    # Fits the integers of every tool, also after the repetitions are added.
    "seed": Setting(partial(whole_number, minimum=0, maximum=10**18 - 1)),
    "share": Setting(switch),
    "test-boots": Setting(partial(whole_number, minimum=1, maximum=100)),
    "toolchain": Setting(toolchain, "toolchains"),
    "without": Setting(names, "untrained", "app, case or action"),
}


@dataclass(frozen=True)
class Settings:
    """The settings that ``set`` changes, with their defaults.

    Attributes:
        dropped: options of the user's files that do not take effect are noted, not refused.
        base: the profile that the first round begins with.
        hotness: the profile that says what is hot, in place of a recording.
    """

    arch: str = "x86-64"
    config: tuple[str, ...] = ("slim",)
    dropped: bool = False
    toolchain: str = "clang"
    device: str = "qemu"
    core: str | None = None
    cpus: int = 1
    seed: int = 1
    repetitions: tuple[int, int] = (5, 12)
    precision: float = 1.0
    relinked: int = 0
    actions: int = 24
    budget: int | None = None
    period: int | None = None
    depth: int = 32
    perf_data: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    instrument: Instrumentation = EVERYTHING
    hotness: Input | None = None
    base: Input | None = None
    decay: Fraction = Fraction(1, 2)
    rounds: int = 1
    scout: bool = True
    share: bool = True
    test_boots: int = 3
    package: tuple[str, str | None] = (NO_PACKAGE, None)
    revision: int = 1
