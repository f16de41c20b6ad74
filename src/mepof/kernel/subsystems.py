"""Subsystems by the names that people use for them, from ``subsystems.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from pydantic import RootModel

from mepof.described import Described, read_described
from mepof.errors import InputError

_DATA = Path(__file__).with_name("subsystems.toml")


class Subsystem(Described):
    """A part of the kernel.

    Attributes:
        paths: of its files in the tree, as :func:`matching` takes them.
    """

    title: str
    paths: tuple[str, ...]


class Subsystems(RootModel[dict[str, Subsystem]]):
    """The data file: a table for each subsystem."""


@cache
def subsystems() -> dict[str, Subsystem]:
    """Every subsystem by its name."""
    return read_described(_DATA, Subsystems, "subsystems").root


def matching(place: str, objects: Iterable[str]) -> frozenset[str]:
    """The objects that belong to a part of the kernel.

    Args:
        place: the name of a subsystem, a directory (``drivers/gpu/``), a file (``kernel/fork.c`` or
            ``kernel/fork.o``), or a shell pattern of files (``**`` crosses directories).
        objects: paths of objects in the tree.
    """
    known = subsystems().get(place)
    expressions = [_expression(path) for path in ((place,) if known is None else known.paths)]
    return frozenset(name for name in objects if any(each.match(name) for each in expressions))


def check_place(place: str, objects: Iterable[str]) -> None:
    """Refuse a path that matches none of the objects of a kernel.

    Raises:
        InputError: with the nearest that does.
    """
    names = frozenset(objects)
    if place in subsystems() or matching(place, names):
        return
    directories = {name[: at + 1] for name in names for at, c in enumerate(name) if c == "/"}
    wanted = re.sub(r"\.c$", ".o", place)
    near = get_close_matches(wanted, directories if place.endswith("/") else names, 1)
    raise InputError(
        f"the kernel compiles no file that matches `{place}`",
        f"did you mean `{near[0]}`?" if near else "name what its configuration compiles",
    )


@cache
def _expression(path: str) -> re.Pattern[str]:
    """Matches the objects of a path."""
    inside = r".+" if path.endswith("/") else ""
    path = re.sub(r"\.[co]$", "", path)
    words = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]]+\])", path)
    meant = {"**/": "(?:.+/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    found = "".join(
        meant.get(word) or (word.replace("[!", "[^") if word[:1] == "[" else re.escape(word))
        for word in words
    )
    return re.compile(rf"{found}{inside}(?:\.o)?\Z")
