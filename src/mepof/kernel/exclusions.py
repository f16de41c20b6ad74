"""The objects that a program excludes from instrumentation and from the use of profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from mepof.errors import InputError

# Sources that an object is compiled from, the second kind after a copy.
_SOURCES = (".c", ".c_shipped")


def objects(tree: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    """The objects in a source tree that patterns select, as patterns of make.

    Args:
        patterns: files (``kernel/fork.c`` or ``kernel/fork.o``), directories (``drivers/gpu/``) or
            shell patterns of either (``net/ipv4/tcp_*``; ``**`` crosses directories).

    Raises:
        InputError: a pattern selects nothing that is compiled from C.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        selected = list(_selected(tree, pattern))
        if not selected:
            near = _nearest(tree, pattern)
            hint = f"did you mean `{near}`?" if near else None
            raise InputError(
                f"the exclusion `{pattern}` matches no C file of the kernel",
                hint or "name a file, a directory that ends in `/`, or a pattern of them",
            )
        found |= dict.fromkeys(selected)
    return tuple(sorted(found))


def unused(patterns: Iterable[str], compiled: Iterable[str]) -> tuple[str, ...]:
    """The patterns of :func:`objects` that match nothing that was compiled."""
    names = set(compiled)
    directories = {name[: at + 1] for name in names for at, c in enumerate(name) if c == "/"}
    return tuple(p for p in patterns if p not in names and p.removesuffix("%") not in directories)


def _selected(tree: Path, pattern: str) -> Iterator[str]:
    if not pattern.endswith("/"):
        stem, dot, suffix = pattern.rpartition(".")
        wanted = [stem + s for s in _SOURCES] if dot and suffix in ("c", "o") else [pattern]
        for path in (path for name in wanted for path in _glob(tree, name)):
            if path.suffix in _SOURCES:
                yield path.relative_to(tree).with_suffix(".o").as_posix()
        if dot and suffix in ("c", "o"):
            return
    for path in _glob(tree, pattern.rstrip("/")):
        if path.is_dir() and any(True for s in _SOURCES for _ in islice(path.rglob(f"*{s}"), 1)):
            yield f"{path.relative_to(tree).as_posix()}/%"


def _glob(tree: Path, pattern: str) -> Iterator[Path]:
    if set("*?[").isdisjoint(pattern):
        path = tree / pattern
        return iter([path] if path.exists() else [])
    return tree.glob(pattern)


def _nearest(tree: Path, pattern: str) -> str | None:
    """The most similar path that exists, corrected at the first part that does not."""
    *parents, last = pattern.rstrip("/").split("/")
    at = tree
    for number, part in enumerate(parents):
        if not (at / part).is_dir():
            near = get_close_matches(part, [p.name for p in at.iterdir() if p.is_dir()], 1)
            corrected = "/".join([*parents[:number], *near, *parents[number + 1 :], last])
            exists = near and any(_selected(tree, corrected))
            return corrected if exists else _elsewhere(tree, last)
        at /= part
    names = {f"{p.name}/" if p.is_dir() else f"{p.stem}.o": p for p in at.iterdir() if _may(p)}
    near = get_close_matches(last, names, 1) or get_close_matches(f"{last}/", names, 1)
    corrected = "/".join([*parents, *near])
    return corrected if near and any(_selected(tree, corrected)) else _elsewhere(tree, last)


def _may(path: Path) -> bool:
    return path.is_dir() or path.suffix in _SOURCES


def _elsewhere(tree: Path, name: str) -> str | None:
    """The first object of that name in another directory."""
    stem = name.rpartition(".")[0]
    if not stem or not set("*?[").isdisjoint(name):
        return None
    first = next(iter(sorted(tree.rglob(f"{stem}.c"))), None)
    return None if first is None else first.relative_to(tree).with_suffix(".o").as_posix()
