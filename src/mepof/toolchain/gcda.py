"""GCC's files of counts (``.gcda``), and archives with those of one kernel.

An archive is a tar file; a member's path is that of the object in the build directory, with
``.gcda`` instead of ``.o``. The layout of a file is that of gcc/gcov-io.h: words of 32 bits in
records of a tag, a length and data. Lengths are in bytes and the header has a checksum from GCC 12
on, and in what counting kernels write for every version; GCC 11 itself has lengths in words and no
checksum. The kinds of counters are those of gcc/gcov-counter.def, and are added up as
libgcc/libgcov-merge.c does it; GCC's own ``gcov-tool`` does the same, but fails on files that have
value profiles (12.2).
"""

from __future__ import annotations

import io
import re
import struct
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from mepof.errors import InputError

_MAGIC = 0x67636461
_SUMMARY = 0xA1000000
_FUNCTION = 0x01000000
# The tag of the first kind of counters; that of the next is _KIND_STEP more.
_COUNTERS, _KIND_STEP = 0x01A10000, 1 << 17
_ARCS, _TOP_VALUES, _TARGETS, BITS, _FIRST_RUN = 0, 3, 4, 6, 7
# GCOV_TOPN_MAXIMUM_TRACKED_VALUES: a site with more values than that has a negative total.
_MAX_VALUES = 32
_MAX_WORD = 0xFFFFFFFF
_COUNT_BITS = 63
_SUFFIX = ".gcda"

#: The oldest major version of GCC whose files are read: earlier ones keep values otherwise.
MIN_VERSION = 11
# The first whose lengths are in bytes, and whose header has a checksum.
_IN_BYTES = 12
_WORD = 4


@dataclass(frozen=True)
class Function:
    """The counts of a function.

    Attributes:
        key: its identifier, and the checksums of its lines and of its control flow.
        counters: by kind.
    """

    key: tuple[int, int, int]
    counters: Mapping[int, tuple[int, ...]]

    @property
    def executed(self) -> bool:
        return any(self.counters.get(_ARCS, ()))

    @property
    def total(self) -> int:
        """The sum of its arcs."""
        return sum(self.counters.get(_ARCS, ()))


@dataclass(frozen=True)
class Counts:
    """A file of counts.

    Attributes:
        version: the word in which the compiler names itself.
        stamp: what it has in common with the object: stamp and, from GCC 12 on, checksum.
        runs: how many runs were added up.
    """

    version: int
    stamp: tuple[int, ...]
    runs: int
    functions: tuple[Function, ...]

    @property
    def major(self) -> int:
        """The compiler's major version."""
        return _major(self.version) or 0

    @property
    def executed(self) -> int:
        """How many functions ran."""
        return sum(function.executed for function in self.functions)

    @property
    def max_arc(self) -> int:
        """The count of the arc that was taken most often."""
        return max((max(f.counters.get(_ARCS, ()), default=0) for f in self.functions), default=0)


Archive = Mapping[str, Counts]


def read_archive(path: Path) -> dict[str, Counts]:
    """The files of counts in an archive by the paths of their objects, ``fs/open.o``.

    Raises:
        InputError: it is not an archive of such files, or one of them is damaged.
    """
    found = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                # The kernel has links to files of the compiler beside those of counts.
                if member.isfile() and (read := archive.extractfile(member)) is not None:
                    found[_object(member.name)] = parse(read.read(), f"{path}, {member.name}")
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{path} is not an archive of GCC's counts: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return found


def write_archive(archive: Archive, path: Path) -> None:
    """Write files of counts by the paths of their objects: the same bytes for the same counts."""
    # What is hot in a file is decided by the largest count of the whole program.
    max_arc = max((counts.max_arc for counts in archive.values()), default=0)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, counts in sorted(archive.items()):
            data = serialize(counts, max_arc)
            member = tarfile.TarInfo(name.removesuffix(".o") + _SUFFIX)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def parse(data: bytes, name: str) -> Counts:
    """Read a file of counts.

    Args:
        name: the file, for messages.

    Raises:
        InputError: it is not one, it is of another machine, or it is cut off.
    """
    try:
        magic, version, *stamp = struct.unpack_from("<IIII", data)
        major = _major(version)
        if magic != _MAGIC or major is None:
            raise InputError(f"{name} is not a file of GCC's counts")
        if major < MIN_VERSION:
            raise InputError(f"{name} is of GCC {major}", f"use GCC {MIN_VERSION} or newer")
        at, unit = 16, 1
        if major < _IN_BYTES and stamp.pop() == _SUMMARY:
            at, unit = 12, _WORD
        runs, functions = 1, list[Function]()
        for tag, values in _records(data, at, unit, name):
            if tag == _SUMMARY:
                (runs,) = struct.unpack_from("<I", values)
            elif tag == _FUNCTION and values:
                functions.append(Function(struct.unpack("<III", values), {}))
            elif tag != _FUNCTION and functions:
                kind = (tag - _COUNTERS) // _KIND_STEP
                counters = struct.unpack(f"<{len(values) // 8}q", values)
                if kind in (_TOP_VALUES, _TARGETS):
                    try:
                        _sites(counters)
                    except ValueError as error:
                        raise InputError(f"{name} is damaged: {error}") from error
                last = functions[-1]
                functions[-1] = replace(last, counters={**last.counters, kind: counters})
    except struct.error as error:
        raise InputError(f"{name} is damaged: {error}") from error
    return Counts(version, tuple(stamp), runs, tuple(functions))


def serialize(counts: Counts, max_arc: int) -> bytes:
    """A file of counts.

    Args:
        max_arc: the largest count of an arc in the whole program.
    """
    unit = 1 if counts.major >= _IN_BYTES else _WORD
    summary = min(counts.runs, _MAX_WORD), min(max_arc, _MAX_WORD)
    header = (_MAGIC, counts.version, *counts.stamp, _SUMMARY, 8 // unit, *summary)
    parts = [struct.pack(f"<{len(header)}I", *header)]
    for function in counts.functions:
        parts.append(struct.pack("<IIIII", _FUNCTION, 12 // unit, *function.key))
        for kind, values in sorted(function.counters.items()):
            tag, size = _COUNTERS + kind * _KIND_STEP, 8 * len(values) // unit
            if any(values):
                parts.append(struct.pack(f"<Ii{len(values)}q", tag, size, *values))
            else:
                parts.append(struct.pack("<Ii", tag, -size))
    return b"".join((*parts, bytes(4)))


def add(weighted: Sequence[tuple[Archive, int]]) -> dict[str, Counts]:
    """The weighted sum of archives. Where a count would be larger than a file can hold, all are
    halved as often as necessary.

    Raises:
        InputError: two of them are of different builds.
    """
    total: dict[str, Counts] = {}
    largest = sum(weight * _largest(archive) for archive, weight in weighted)
    halvings = max(0, largest.bit_length() - _COUNT_BITS)
    for archive, weight in weighted:
        for name, counts in archive.items():
            heavier = replace(
                counts,
                functions=tuple(_times(each, weight, halvings) for each in counts.functions),
            )
            total[name] = _sum(name, total[name], heavier) if name in total else heavier
    return total


def _sum(name: str, one: Counts, other: Counts) -> Counts:
    shapes = [[_shape(function) for function in counts.functions] for counts in (one, other)]
    if (one.version, one.stamp, shapes[0]) != (other.version, other.stamp, shapes[1]):
        raise InputError(f"the counts of {name} are of different builds")
    functions = (_plus(*both) for both in zip(one.functions, other.functions, strict=True))
    return replace(one, runs=one.runs + other.runs, functions=tuple(functions))


def _shape(function: Function) -> object:
    """What is the same in all counts of a function."""
    counters = function.counters.items()
    sizes = {k: len(_sites(v) if k in (_TOP_VALUES, _TARGETS) else v) for k, v in counters}
    return function.key, sizes


def _largest(archive: Archive) -> int:
    """The largest count in an archive."""
    functions = (function for counts in archive.values() for function in counts.functions)
    counters = (each for function in functions for each in function.counters.items())
    return max((abs(count) for each in counters for count in _counts(*each)), default=0)


def _counts(kind: int, values: tuple[int, ...]) -> Iterator[int]:
    """What is added up of the counters of a kind."""
    if kind in (_TOP_VALUES, _TARGETS):
        for total, found in _sites(values):
            yield from (total, *found.values())
    elif kind < BITS:
        yield from values


def _times(function: Function, weight: int, halvings: int) -> Function:
    def scaled(count: int) -> int:
        return (abs(count) * weight >> halvings) * (-1 if count < 0 else 1)

    def times(kind: int, values: tuple[int, ...]) -> tuple[int, ...]:
        if kind in (_TOP_VALUES, _TARGETS):
            sites = _sites(values)
            return _of_sites(
                (scaled(total), {value: scaled(count) for value, count in values.items()})
                for total, values in sites
            )
        return values if kind >= BITS else tuple(map(scaled, values))

    return replace(function, counters={k: times(k, v) for k, v in function.counters.items()})


def _plus(one: Function, other: Function) -> Function:
    def plus(kind: int, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        if kind in (_TOP_VALUES, _TARGETS):
            both = zip(_sites(a), _sites(b), strict=True)
            return _of_sites(
                (_add_totals(x[0], y[0]), Counter(x[1]) + Counter(y[1])) for x, y in both
            )
        pairs = zip(a, b, strict=True)
        if kind == _FIRST_RUN:
            return tuple(min(x, y) if x and y else x or y for x, y in pairs)
        return tuple(x | y if kind >= BITS else x + y for x, y in pairs)

    counters = {kind: plus(kind, a, other.counters[kind]) for kind, a in one.counters.items()}
    return replace(one, counters=counters)


def _add_totals(a: int, b: int) -> int:
    total = abs(a) + abs(b)
    return -total if a < 0 or b < 0 else total


def _sites(values: Sequence[int]) -> list[tuple[int, dict[int, int]]]:
    """Of counters of values: the total of each site, and the count of each value.

    Raises:
        ValueError: they end within a site.
    """
    sites, rest = [], iter(values)
    for total in rest:
        number = next(rest, -1)
        pairs = [*islice(rest, max(2 * number, 0))]
        if number < 0 or len(pairs) < 2 * number:
            raise ValueError("values of a site are missing")
        found: dict[int, int] = {}
        for value, count in zip(pairs[::2], pairs[1::2], strict=True):
            found[value] = found.get(value, 0) + count
        sites.append((total, found))
    return sites


def _of_sites(sites: Iterable[tuple[int, Mapping[int, int]]]) -> tuple[int, ...]:
    found: list[int] = []
    for total, values in sites:
        kept = sorted(values.items(), key=lambda each: (-each[1], each[0]))[:_MAX_VALUES]
        found += (-abs(total) if len(kept) < len(values) else total, len(kept))
        found += (number for pair in kept for number in pair)
    return tuple(found)


def _records(data: bytes, at: int, unit: int, name: str) -> Iterator[tuple[int, bytes]]:
    """The tags and the data of a file's records. Counters that are all zero have a negative length
    and no data.

    Args:
        at: where the first one begins.
        unit: what lengths are multiples of, in bytes.
    """
    while at < len(data):
        (tag,) = struct.unpack_from("<I", data, at)
        if tag == 0:
            return
        length = unit * struct.unpack_from("<i", data, at + 4)[0]
        at += 8
        if length < 0:
            yield tag, bytes(min(-length, len(data) << 10))
            continue
        if at + length > len(data):
            raise InputError(f"{name} is cut off")
        yield tag, data[at : at + length]
        at += length


def _major(version: int) -> int | None:
    """The major version of a word such as ``B22*``: a letter for the tens from A on, a digit."""
    text = version.to_bytes(4, "big")
    if re.fullmatch(rb"[A-Z]\d..", text) is None:
        return None
    return (text[0] - ord("A")) * 10 + int(text[1:2])


def _object(name: str) -> str:
    """The object whose counts are in a member. GCC writes ``#`` for ``/`` in the names of files
    that go into another directory."""
    return name.removeprefix("./").replace("#", "/").removesuffix(_SUFFIX) + ".o"
