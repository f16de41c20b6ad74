"""AutoFDO profiles as trees, from and to their text form.

The text form is that of LLVM 22 (llvm/include/llvm/ProfileData/SampleProfReader.h): functions with
their total and how often they were entered, lines with their count and the functions that they
called, and under a line what was inlined there, each level indented by one more blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mepof.errors import InputError

_FUNCTION = re.compile(r"(\S.*):([0-9]{1,20}):([0-9]{1,20})$")
# A name may be a hash, in decimal digits.
_INLINED = re.compile(r" +([0-9.]+): (\S+):([0-9]{1,20})$")
_BODY = re.compile(r" +([0-9.]+): ([0-9]{1,20})((?: \S+:[0-9]{1,20})*)$")
_CHECKSUM = "!CFGChecksum:"

#: A line offset with its discriminator, and the function that was inlined there.
Site = tuple[str, str]


@dataclass
class Line:
    """The count of a line, and how often it called which function."""

    count: int
    targets: dict[str, int] = field(default_factory=dict)


@dataclass
class Function:
    """A function, or a copy of it that was inlined.

    Attributes:
        total: the bytes that ran, with those of what was inlined.
        head: how often it was entered; 0 for a copy.
        lines: by offset and discriminator.
        inlined: what was inlined into it.
        notes: its metadata.
    """

    total: int
    head: int = 0
    lines: dict[str, Line] = field(default_factory=dict)
    inlined: dict[Site, Function] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def checksum(self) -> str | None:
        """What identifies its control flow, where pseudo probes mark it."""
        return next((note for note in self.notes if note.startswith(_CHECKSUM)), None)

    def callees(self) -> Iterator[str]:
        """The names of everything that was inlined, at any depth."""
        for (_, name), function in self.inlined.items():
            yield name
            yield from function.callees()


def order(location: str) -> tuple[int, ...]:
    """The position of a line offset with its discriminator."""
    return tuple(int(part) for part in location.split("."))


def parse(text: str) -> dict[str, Function]:
    """The functions of a profile in the text form, by name.

    Raises:
        InputError: a line is not of that form.
    """
    found: dict[str, Function] = {}
    around: list[Function] = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        del around[depth:]
        if match := _FUNCTION.match(line) if depth == 0 else None:
            around = [Function(int(match[2]), int(match[3]))]
            found[match[1]] = around[0]
        elif not around or len(around) < depth:
            raise InputError(f"`{line[:80]}` is not a line of a text profile")
        elif match := _INLINED.match(line):
            copy = Function(int(match[3]))
            around[-1].inlined[match[1], match[2]] = copy
            around.append(copy)
        elif match := _BODY.match(line):
            targets = (target.rpartition(":") for target in match[3].split())
            around[-1].lines[match[1]] = Line(int(match[2]), {n: int(c) for n, _, c in targets})
        elif line.lstrip().startswith("!"):
            around[-1].notes = (*around[-1].notes, line.strip())
        else:
            raise InputError(f"`{line[:80]}` is not a line of a text profile")
    return found


def render(functions: dict[str, Function]) -> str:
    """The text form of functions."""
    lines: list[str] = []
    for name, function in functions.items():
        lines.append(f"{name}:{function.total}:{function.head}")
        _render(function, " ", lines)
    return "".join(f"{line}\n" for line in lines)


def _render(function: Function, indent: str, lines: list[str]) -> None:
    for location in sorted(function.lines, key=order):
        line = function.lines[location]
        targets = "".join(f" {name}:{count}" for name, count in line.targets.items())
        lines.append(f"{indent}{location}: {line.count}{targets}")
    for location, name in sorted(function.inlined, key=lambda site: (order(site[0]), site[1])):
        copy = function.inlined[location, name]
        lines.append(f"{indent}{location}: {name}:{copy.total}")
        _render(copy, f"{indent} ", lines)
    lines += (f"{indent}{note}" for note in function.notes)
