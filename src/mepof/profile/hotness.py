"""How much of each object ran, by a profile of any kind that counts by functions or files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mepof import _engine
from mepof.errors import InputError
from mepof.profile.artifact import profile_files
from mepof.profile.counts import read_counts
from mepof.profile.instrumentation import is_instrumentation
from mepof.toolchain import gcda
from mepof.toolchain.profile_names import object_of

_ALL = 1 << 32
_TAR = b"ustar"


def hotness(given: Path, defined: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The counts of a profile, by object; in a unit of its own.

    Args:
        given: a profile, or a directory with its files.
        defined: the functions of each object of a kernel. A name that several objects have counts
            for each, unless the profile says where it is from.

    Raises:
        InputError: it does not say how often functions ran.
    """
    owners: dict[str, list[str]] = {}
    for name, symbols in defined.items():
        for symbol in symbols:
            owners.setdefault(symbol, []).append(name)
    found: Counter[str] = Counter()
    for symbol, count in _counts(given):
        source, _, function = symbol.rpartition(";")
        compiled = object_of(source)
        names = [compiled] if compiled in defined else owners.get(function, [])
        for name in names:
            found[name] += count
    return dict(found)


def _counts(given: Path) -> Iterator[tuple[str, int]]:
    """The count of each function, or of each object as ``SOURCE;``."""
    files = profile_files(given) if given.is_dir() else (given,)
    for file in files:
        if is_instrumentation(file):
            yield from ((each.name, each.total) for each in read_counts(file))
            return
        if _is_archive(file):
            for name, counts in gcda.read_archive(file).items():
                yield f"{name.removesuffix('.o')}.c;", sum(each.total for each in counts.functions)
            return
        try:
            shown = json.loads(_engine.show(file, _ALL, 0))
        except InputError:
            continue  # a layout, beside the profile that it is of
        yield from ((each["name"], each["total"]) for each in shown["functions"])
        return
    raise InputError(
        f"{given} does not say how often functions ran",
        "name a profile of pgo, cspgo, gcc-pgo or autofdo",
    )


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(512)[257:262] == _TAR
