"""What objtool reports about a kernel's code: unwinding, unreachable code, rules of entry code.

Its warnings do not stop a build. If it warns only when a profile is used, the profile has led to
code that cannot be unwound, or that objtool misreads.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import WorkError

# Make's line for an object that it builds: earlier warnings about it no longer apply.
_MADE = re.compile(r"  (?:CC|AS|LD|OBJTOOL)(?: \[M\])? +(\S+\.o)$")
# What a profile says of calls, Clang tells the linker in a section that no kernel has. Later
# objtools leave it alone, earlier ones check it like data of the kernel.
_WARNED = re.compile(r"(\S+\.o): warning: objtool: (?!\.llvm\.call-graph-profile\b)(.*)$")
_OFFSET = re.compile(r"\+0x[0-9a-f]+|\.cold\b")
_FUNCTION = re.compile(r"^(\w+)(?:: |\()|(\w+)\(\)")


@dataclass(frozen=True, order=True)
class Warned:
    """A warning, without the parts that differ between compilations of the same code.

    Attributes:
        file: the object's path in the tree, or ``vmlinux.o``.
        text: what is wrong and where, without offsets.
    """

    file: str
    text: str

    def functions(self) -> frozenset[str]:
        """The functions that it names."""
        return frozenset(name for pair in _FUNCTION.findall(self.text) for name in pair if name)

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"


class Unclean(WorkError):
    """Objtool warns about a kernel that was built with a profile."""

    def __init__(self, warned: Set[Warned]) -> None:
        self.warned = frozenset(warned)
        super().__init__(summary(warned), "see the log of the build")


def summary(warned: Set[Warned]) -> str:
    """At least one warning, in one line."""
    more = f" (and {len(warned) - 1} more)" if len(warned) > 1 else ""
    return f"objtool warns about {min(warned)}{more}"


def warnings(log: Path) -> frozenset[Warned]:
    """What objtool warned of in the last compilation of each object.

    Args:
        log: the output of make, of one or several builds in the same directory.
    """
    found = (_WARNED.match(line) for line in warning_lines(log))
    return frozenset(Warned(each[1], _OFFSET.sub("", each[2])) for each in found if each)


def warning_lines(log: Path) -> tuple[str, ...]:
    """The lines of these warnings, each with its end."""
    of: dict[str, list[str]] = {}
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if made := _MADE.match(line):
                of.pop(made[1], None)
            elif warned := _WARNED.match(line):
                of.setdefault(warned[1], []).append(line)
    return tuple(line for lines in of.values() for line in lines)
