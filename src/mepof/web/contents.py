"""What is inside of an artifact: no path leads out of it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MAX_SHOWN_BYTES = 1 << 20
_MAX_ENTRIES = 2000


@dataclass(frozen=True)
class Item:
    """An entry of a directory: its size for a file, its target for a link."""

    name: str
    kind: Literal["dir", "file", "link", "other"]
    size: int = 0
    target: str = ""


def inside(root: Path, relative: str) -> Path | None:
    """The file or directory at a relative path; None if there is none, or a link is on the way."""
    path = root
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            return None
        for name in relative.split("/") if relative else ():
            if name in ("", ".", "..") or "\0" in name:
                return None
            path = path / name
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                return None
    except (OSError, UnicodeError):
        return None
    return path


def items_of(directory: Path) -> tuple[tuple[Item, ...], int]:
    """The first entries of a directory, directories first, and how many there are."""
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda e: (not e.is_dir(follow_symlinks=False), e.name))
    items = []
    for entry in entries[:_MAX_ENTRIES]:
        if entry.is_symlink():
            items.append(Item(entry.name, "link", target=str(Path(entry.path).readlink())))
        elif entry.is_dir(follow_symlinks=False):
            items.append(Item(entry.name, "dir"))
        elif entry.is_file(follow_symlinks=False):
            items.append(Item(entry.name, "file", entry.stat(follow_symlinks=False).st_size))
        else:
            items.append(Item(entry.name, "other"))
    return tuple(items), len(entries)


def text_of(path: Path) -> str | None:
    """A file as text; None if it is large or is not text."""
    try:
        if path.stat().st_size > MAX_SHOWN_BYTES:
            return None
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
