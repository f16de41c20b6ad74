"""Locations of the emulated PMU's events in the kernel: the file ``places.json`` of one boot.

The plugin reports executions and events of each translated block of kernel code, and how many
instructions of each page of text were executed in each slice of time. This module attributes
them to functions, the most expensive first, and makes the data of a heatmap.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, NonNegativeInt, ValidationError

from mepof.errors import InputError, WorkError
from mepof.pmu.events import cycles_of
from mepof.suite.cases import CaseId

SCHEMA = "mepof-places/1"
PAGE_BYTES = 4096
_UNKNOWN = "[unknown]"
# Elf64_Sym and Elf32_Sym, little endian: the places of name, info, address and size in them.
_SYMBOLS = {
    64: (struct.Struct("<IBBHQQ"), itemgetter(0, 1, 4, 5)),
    32: (struct.Struct("<IIIBBH"), itemgetter(0, 3, 1, 2)),
}
# Entry code has no type (STT_NOTYPE, STT_FUNC).
_CODE = (0, 2)
# What the kernel's linker script puts around such code (include/asm-generic/vmlinux.lds.h).
_UNINSTRUMENTED = tuple(
    (f"__{text}_text_start", f"__{text}_text_end") for text in ("noinstr", "entry")
)
_LIMITS = frozenset(name for limits in _UNINSTRUMENTED for name in limits)


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Head(_Read):
    version: int
    events: tuple[str, ...]


class _Line(_Read):
    """One interval as the plugin reports it (native/pmu/blocks.h).

    Attributes:
        sites: start, end, instructions, executions, and each event, of a block.
        slices: of each slice, pairs of a page's number and the instructions executed there.
    """

    sites: tuple[tuple[NonNegativeInt, ...], ...]
    slices: tuple[tuple[tuple[NonNegativeInt, NonNegativeInt], ...], ...]


@dataclass(frozen=True)
class RawLocations:
    """The plugin's output: the names of its events, and its intervals."""

    events: tuple[str, ...]
    intervals: tuple[_Line, ...]


@dataclass(frozen=True)
class Function:
    """A function of the kernel, from its symbol."""

    address: int
    size: int
    name: str


class FunctionEvents(_Read):
    """Events in a function during one case.

    Attributes:
        address: of the function; of its first block if the code is in no known function.
        instructions: executed; blocks that an exception left early count as whole.
        cycles: modelled (docs/pmu.md).
        events: counts above 0, by the plugin's names.
    """

    name: str
    address: NonNegativeInt
    instructions: NonNegativeInt
    cycles: NonNegativeFloat
    events: dict[str, NonNegativeInt]


class Heatmap(_Read):
    """Instructions by page of kernel text and by time.

    Attributes:
        pages: numbers of the executed pages (address divided by ``page_bytes``), rising.
        rows: for each slice of time, pairs of an index into ``pages`` and the instructions
            executed there.
    """

    page_bytes: int
    pages: tuple[int, ...]
    rows: tuple[tuple[tuple[int, int], ...], ...]


class CaseLocations(_Read):
    """Events of one case by function, those with the most cycles first."""

    suite: str
    case: str
    functions: tuple[FunctionEvents, ...]
    heatmap: Heatmap


class Locations(_Read):
    """Locations of a boot's events on the modelled core."""

    schema_id: str = SCHEMA
    core: str
    cases: tuple[CaseLocations, ...]

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json() + "\n"


def read_raw(path: Path) -> RawLocations:
    """Read the plugin's output: a line of names, then a line for each interval.

    Raises:
        WorkError: the file cannot be read, or has another format.
    """
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        head = _Head.model_validate_json(first)
        intervals = tuple(_Line.model_validate_json(line) for line in lines)
    except (OSError, ValueError, ValidationError) as error:
        reason = str(error).partition("\n")[0]
        raise WorkError(f"{path} is not a list of event locations: {reason}") from error
    columns = 4 + len(head.events)
    if head.version != 1 or any(len(s) != columns for line in intervals for s in line.sites):
        raise WorkError(f"{path} is not a list of event locations: unknown version or columns")
    return RawLocations(head.events, intervals)


def functions_of(build: Path) -> tuple[Function, ...]:
    """The functions of a build's ``vmlinux``, by address; empty if it has only an image.

    Raises:
        WorkError: the file cannot be read.
    """
    found = {
        address: Function(address, size, name)
        for name, info, address, size in _symbols(build)
        if info & 0xF in _CODE and size > 0
    }
    return tuple(found[address] for address in sorted(found))


def uninstrumented_in(build: Path) -> tuple[range, ...]:
    """The addresses of code that a kernel must not instrument: entry code and ``noinstr``.

    Raises:
        WorkError: the build's ``vmlinux`` cannot be read.
    """
    found = {name: address for name, _, address, _ in _symbols(build) if name in _LIMITS}
    return tuple(
        range(found[start], found[end])
        for start, end in _UNINSTRUMENTED
        if start in found and end in found
    )


def _symbols(build: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Name, info, address and size of each symbol of a build's ``vmlinux``; none if it has only an
    image."""
    vmlinux = build / "vmlinux"
    if not vmlinux.is_file():
        return ()
    try:
        with vmlinux.open("rb") as file:
            elf = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection):
                return ()
            names = elf.get_section(table["sh_link"]).data()
            # Kernels are little-endian. pyelftools is too slow for their hundred thousand symbols.
            form, places = _SYMBOLS[elf.elfclass]
            return tuple(
                (_name_at(names, name), info, address, size)
                for name, info, address, size in map(places, form.iter_unpack(table.data()))
            )
    except (ELFError, OSError, ValueError, struct.error) as error:
        raise WorkError(f"{vmlinux} cannot be read as a kernel: {error}") from error


def _name_at(names: bytes, offset: int) -> str:
    return names[offset : names.index(b"\0", offset)].decode("utf-8", "replace")


def locations_of(
    core: str, cases: Sequence[CaseId], raw: RawLocations, functions: Sequence[Function]
) -> Locations:
    """Attribute events to cases and functions.

    Args:
        cases: those that ran, in their order.
        functions: in the order of their addresses.

    Raises:
        WorkError: there is not one interval for each case.
    """
    if len(raw.intervals) != len(cases):
        raise WorkError(
            f"{len(cases)} cases ran but {len(raw.intervals)} intervals have event locations"
        )
    return Locations(
        core=core,
        cases=tuple(
            CaseLocations(
                suite=suite,
                case=case,
                functions=_by_function(raw.events, line, functions),
                heatmap=_heatmap(line),
            )
            for (suite, case), line in zip(cases, raw.intervals, strict=True)
        ),
    )


def read_locations(path: Path) -> Locations:
    """Read a ``places.json``.

    Raises:
        InputError: it cannot be read, or is not one.
    """
    try:
        return Locations.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        raise InputError(f"{path} is not a list of event locations") from error


def _by_function(
    names: Sequence[str], line: _Line, functions: Sequence[Function]
) -> tuple[FunctionEvents, ...]:
    starts = [function.address for function in functions]
    sites = sorted(line.sites)
    found = []
    for index, group in groupby(sites, key=lambda site: index_of(site[0], starts, functions)):
        blocks = [*group]
        instructions = sum(size * executions for _, _, size, executions, *_ in blocks)
        totals = [sum(column) for column in zip(*(block[4:] for block in blocks), strict=True)]
        events: Mapping[str, int] = dict(zip(names, totals, strict=True))
        found.append(
            FunctionEvents(
                name=functions[index].name if index is not None else _UNKNOWN,
                address=functions[index].address if index is not None else blocks[0][0],
                instructions=instructions,
                cycles=sum(cycles_of(events).values()),
                events={name: count for name, count in events.items() if count},
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.cycles, one.address)))


def index_of(address: int, starts: Sequence[int], functions: Sequence[Function]) -> int | None:
    """Index of the function that contains an address, if any does.

    Args:
        starts: the addresses of the functions, in order.
    """
    index = bisect_right(starts, address) - 1
    if index < 0 or address >= functions[index].address + functions[index].size:
        return None
    return index


def _heatmap(line: _Line) -> Heatmap:
    pages = sorted({page for row in line.slices for page, _ in row})
    index = {page: number for number, page in enumerate(pages)}
    return Heatmap(
        page_bytes=PAGE_BYTES,
        pages=tuple(pages),
        rows=tuple(
            tuple((index[page], instructions) for page, instructions in row) for row in line.slices
        ),
    )
