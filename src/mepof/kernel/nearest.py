"""Where in a tree an edit would have fitted most likely, for whoever adapts it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

Kind = Literal["macro", "array", "function"]

_DEFINITIONS: dict[Kind, str] = {
    "macro": r"^#define[ \t]+({name})\b",
    "array": r"\b({name})\[[^\]\n]*\]\s*=\s*\{{",
    "function": r"^\w[^\n;={{]*?\b({name})\(",
}
_MAX_SHOWN = 100
# Sources that a definition may have moved to.
_SUFFIXES = (".c", ".h", ".S")


@dataclass(frozen=True)
class Wanted:
    """What an edit looks for: a definition of a kind in a file, or with no name the file."""

    file: str
    kind: Kind
    name: str | None


def nearest_location(tree: Path, wanted: Wanted, text: str | None) -> str | None:
    """The location that is nearest to what was not found: ``FILE:LINE: TEXT``.

    Args:
        text: of the file; None if it does not exist.
    """
    if text is None:
        return _nearest_file(tree, wanted)
    if wanted.name is None:
        return None
    # The name is there in another form, or its definition has moved to a file beside it.
    if found := re.search(rf"\b{re.escape(wanted.name)}\b", text):
        return f"it is written otherwise there: {_shown(wanted.file, text, found.start())}"
    if moved := _defined_beside(tree, wanted):
        return moved
    names = {m[1]: m.start(1) for m in re.finditer(_definition(wanted.kind, r"\w+"), text, re.M)}
    near = get_close_matches(wanted.name, names, n=1, cutoff=0.5)
    return f"the nearest is {_shown(wanted.file, text, names[near[0]])}" if near else None


def _definition(kind: Kind, name: str) -> str:
    return _DEFINITIONS[kind].format(name=name)


def _defined_beside(tree: Path, wanted: Wanted) -> str | None:
    directory = tree / Path(wanted.file).parent
    pattern = re.compile(_definition(wanted.kind, re.escape(wanted.name or "")), re.M)
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.suffix in _SUFFIXES and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            if found := pattern.search(text):
                name = path.relative_to(tree).as_posix()
                return f"it has moved to {_shown(name, text, found.start(1))}"
    return None


def _nearest_file(tree: Path, wanted: Wanted) -> str | None:
    """Where the definition is now, or a file whose path is most like that of the missing one."""
    parent = Path(wanted.file).parent
    # kernel/module/main.c was kernel/module.c.
    for above in (parent, parent.parent):
        moved = _defined_beside(tree, Wanted(f"{above}/x", wanted.kind, wanted.name))
        if wanted.name and moved:
            return moved
    near = get_close_matches(wanted.file, sorted(_files(tree, Path(wanted.file).name)), n=1)
    before = tree / f"{parent}{Path(wanted.file).suffix}"
    if before.is_file():
        return f"the nearest is {before.relative_to(tree)}"
    return f"the nearest is {near[0]}" if near else None


def _files(tree: Path, name: str) -> Iterator[str]:
    for directory, _, names in os.walk(tree):
        if name in names:
            yield (Path(directory) / name).relative_to(tree).as_posix()


def _shown(file: str, text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0].strip()
    return f"{file}:{text.count(chr(10), 0, at) + 1}: {line[:_MAX_SHOWN]}"
