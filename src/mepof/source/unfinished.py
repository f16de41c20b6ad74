"""What the files of a tree say of work on it that is not finished: patches, submodules, git LFS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mepof.errors import listed
from mepof.plan.digest import Entry, walk

# Lists of patches, by quilt(1); dpkg-source(1) has the first one for its format `3.0 (quilt)`.
_SERIES = ("debian/patches/series", "patches/series")
_APPLIED = ".pc/applied-patches"
_REJECTED = ".rej"
_MODULES, _MODULE = ".gitmodules", re.compile(r"^\s*path\s*=\s*(\S.*?)\s*$", re.M)
# What stands in the place of a large file: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = range(100, 1024)
_MAX_SHOWN = 3


def unfinished(tree: Path) -> tuple[tuple[str, str], ...]:
    """What is unfinished in a tree, each with a remedy; a kernel may build nevertheless, but not
    the one that was meant. Nothing of a tree that cannot be read: copying it says why."""
    try:
        entries = walk(tree, skip=(".git",))
        return (
            *_patches(tree),
            *_rejected(entries),
            *_submodules(tree),
            *_pointers(tree, entries),
        )
    except OSError:
        return ()


def _patches(tree: Path) -> Iterator[tuple[str, str]]:
    for series in _SERIES:
        wanted, applied = _patches_in(tree / series), _patches_in(tree / _APPLIED)
        if missing := [patch for patch in wanted if patch not in applied]:
            yield (
                f"{len(missing)} of the {len(wanted)} patches of {series} are not in {_APPLIED}, "
                f"such as {missing[0]}",
                f"apply them by `QUILT_PATCHES={Path(series).parent} quilt push -a`, unless the "
                "tree was made with them",
            )


def _patches_in(path: Path) -> tuple[str, ...]:
    """The patches that a file lists; options of `patch` and comments follow their names."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(words[0] for words in lines if words)


def _rejected(entries: list[Entry]) -> Iterator[tuple[str, str]]:
    if names := [name for name, kind, _ in entries if kind != "dir" and name.endswith(_REJECTED)]:
        yield (
            f"a patch did not apply as a whole: it left {listed(names, _MAX_SHOWN)}",
            "apply what is left by hand, and remove the file",
        )


def _submodules(tree: Path) -> Iterator[tuple[str, str]]:
    file = tree / _MODULES
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    names = _MODULE.findall(text)
    if empty := [
        each for each in names if not (tree / each).is_dir() or not any((tree / each).iterdir())
    ]:
        yield (
            f"submodules of git are not there: {listed(empty, _MAX_SHOWN)}",
            "name the directory of a clone after `git submodule update --init` there",
        )


def _pointers(tree: Path, entries: list[Entry]) -> Iterator[tuple[str, str]]:
    attributes = (tree / name for name, *_ in entries if Path(name).name == ".gitattributes")
    if not any(b"filter=lfs" in path.read_bytes() for path in attributes if path.is_file()):
        return
    small = (
        name
        for name, kind, status in entries
        if kind in ("file", "exec") and status.st_size in _POINTER_BYTES
    )
    if names := [name for name in small if (tree / name).read_bytes().startswith(_POINTER)]:
        yield (
            f"git LFS has the content of {listed(names, _MAX_SHOWN)}",
            "name the directory of a clone after `git lfs pull` there",
        )
