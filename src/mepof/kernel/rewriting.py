"""A finished kernel rewritten by LLVM's BOLT: new layouts for the blocks of its functions.

BOLT rewrites kernels in place: a function stays where it is, its blocks are reordered, and what
never ran moves to reserved space (the overlay ``bolt``). BOLT by itself leaves every function alone
that an exception, an alternative or a paravirtual call has to do with, and does not know other
tables at all. So it is shown a kernel without these tables, but with one that it keeps up to date,
``.smp_locks``, which lists everything that any of them points to; they are then written from that.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mepof.errors import InputError, WorkError
from mepof.kernel import code_tables
from mepof.kernel.code_tables import KEY, KEY_SYMBOLS, RETURNS, CodeTables, Jump
from mepof.kernel.kconfig import Fragments
from mepof.kernel.source import KernelVersion
from mepof.kernel.vmlinux import Function, Section, Vmlinux
from mepof.toolchain.protocol import Run

_LISTED = ".smp_locks"
_JUMPS = ".mepof_jumps"
_NO_JUMPS = Section(_JUMPS, 0, 0, 0, allocated=True, code=False)
_SPACE = ("__bolt_reserved_start", "__bolt_reserved_end")
_X86_64 = 62
# What must be off; the second selects the first.
_RELOCATABLE = ("CONFIG_RELOCATABLE", "CONFIG_EFI_STUB")
# What BOLT is asked for. Blocks that nothing seems to reach are those that exceptions lead to.
OPTIONS = (
    "--reorder-blocks=ext-tsp",
    "--split-functions",
    "--split-all-cold",
    "--eliminate-unreachable=0",
    # Jumps by features must have the size that they had.
    "--long-jump-labels",
    "--bolt-info=0",
)
# Jumps to a thunk that returns look like tail calls, and the kernel patches each that it knows.
_KEEP_TAIL_CALLS = "--simplify-conditional-tail-calls=0"
_NOT_THERE = re.compile(r"BOLT-ERROR: .*? (?:at|address) 0x([0-9a-f]+)")
_MOVE = re.compile(rb"[\x48-\x4f]\xc7[\s\S]{1,6}$")
_COMPLAINT = re.compile(r"BOLT-ERROR: (.*)")
_MAX_RUNS = 8
_CALL_BYTES = 5
# CALL, JMP, and CALL through memory.
_WITH_DISTANCE = (b"\xe8", b"\xe9", b"\xff\x15")
# Symbols that code is called by, but that are not functions of C.
_NOT_OF_C = ("__SCT__", "__pfx_", "__cfi_")


class Rewritten(BaseModel):
    """What became of a kernel.

    Attributes:
        functions: so many have a new layout.
        alone: so many had a profile, but had to be left alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    functions: int
    alone: int


def check_configuration(lines: Collection[str], arch: str) -> None:
    """Refuse a kernel that cannot be rewritten.

    Args:
        lines: of its configuration.

    Raises:
        InputError: it cannot, and why.
    """
    if arch != "x86-64":
        raise InputError(
            f"BOLT rewrites kernels for x86-64 only, not for {arch}",
            "use `propeller` instead of `bolt`",
        )
    for what, options in {
        "the relocations of a kernel that can be loaded anywhere": _RELOCATABLE,
        "the calls of a kernel that checks its memory accesses": ("CONFIG_KASAN",),
    }.items():
        if f"{options[0]}=y" in lines:
            off = " and ".join(f"`# {option} is not set`" for option in options)
            raise InputError(
                f"BOLT does not move {what} ({options[0]})",
                f"set a configuration with {off}, or use `propeller`",
            )


def check_wanted(fragments: Fragments, arch: str) -> None:
    """Refuse what cannot be rewritten before Kconfig is asked, which makes kernels relocatable
    unless a configuration says otherwise.

    Raises:
        InputError: it cannot, and why.
    """
    wanted, default = fragments.values(), fragments.default
    stub = "n" if wanted.get("EFI") == "n" else wanted.get("EFI_STUB", default)
    lines = {f"CONFIG_{name}={value}" for name, value in wanted.items()}
    if "y" in (stub, wanted.get("RELOCATABLE", default)):
        lines.add(f"{_RELOCATABLE[0]}=y")
    check_configuration(lines, arch)


def check_release(version: KernelVersion) -> None:
    """Refuse a release whose tables are not known to have the formats that are read.

    Raises:
        InputError: it is one, and which are not.
    """
    if not code_tables.FIRST <= (version.version, version.patchlevel) <= code_tables.LAST:
        first, last = (".".join(map(str, each)) for each in (code_tables.FIRST, code_tables.LAST))
        raise InputError(
            f"the tables of Linux {version} that point into its code are not known: BOLT rewrites "
            f"Linux {first} to {last}",
            "use `propeller` instead of `bolt`",
        )


def check_kernel(vmlinux: Path) -> tuple[Vmlinux, CodeTables]:
    """Read a finished kernel, and what its tables say.

    Raises:
        WorkError: it cannot be rewritten.
    """
    kernel = Vmlinux.read(vmlinux)
    if any(kernel.symbol(name) is None for name in _SPACE):
        raise WorkError(
            "the kernel has no space for what BOLT moves out of functions",
            "its linker script must be one that the overlay `bolt` fits",
        )
    return kernel, code_tables.read(kernel)


def rewrite(
    program: str,
    vmlinux: Path,
    counts: Path,
    candidates: Collection[str],
    output: Path,
    scratch: Path,
    run: Run,
) -> Rewritten:
    """Lay out the functions of a finished kernel.

    Args:
        program: BOLT's command.
        output: the file to write.
        counts: BOLT's fdata of exactly this kernel.
        candidates: names of the functions that may be touched: of C, and not to be spared.
        scratch: an existing directory.

    Raises:
        WorkError: BOLT cannot take the kernel.
    """
    kernel, tables = check_kernel(vmlinux)
    recorded = counts.read_text(encoding="utf-8")
    profiled = profiled_functions(recorded)
    ran = [each for each in kernel.functions if not profiled.isdisjoint(_bolt_names(each))]
    tables = replace(tables, pushed=tuple(code_tables.pushes(kernel, ran)))
    alone = {each.address for each in ran if not may_move(each, candidates)}
    alone |= fixed(kernel, tables, ran)
    shown, (anchors, jumps) = _shown(kernel, tables)
    before, after, listed, usable = (
        scratch / name for name in ("shown", "moved", "functions", "counts")
    )
    thunks = kernel.sections.get(RETURNS)
    options = [*OPTIONS, *([_KEEP_TAIL_CALLS] if thunks is not None and thunks.size else [])]
    before.write_bytes(shown)
    usable.write_text("".join(outside_patched(recorded, kernel, tables)), encoding="utf-8")
    for _ in range(_MAX_RUNS):
        chosen = [each for each in ran if each.address not in alone]
        if not chosen:  # an empty list would be all functions
            output.write_bytes(kernel.data)
            return Rewritten(functions=0, alone=len(alone))
        listed.write_text("".join(f"{each.bolt_name}\n" for each in chosen), encoding="utf-8")
        after.unlink(missing_ok=True)
        result = run(
            [
                program,
                before,
                "-o",
                after,
                f"--data={usable}",
                f"--funcs-file-no-regex={listed}",
                *options,
            ],
            check=False,
        )
        refused = _refused(kernel, result.output)
        if result.status == 0 and after.is_file() and not refused:
            moved = _moved(after.read_bytes(), anchors, tables.anchors)
            data = _put_back(kernel, after.read_bytes())
            refused = torn(kernel, data, tables, moved)
            if not refused:
                code_tables.write(data, kernel, tables, moved, _jumps(after.read_bytes(), jumps))
                done = sum(
                    kernel.at(each.address, each.size)
                    != bytes(data[kernel.position(each.address) :][: each.size])
                    for each in chosen
                )
                output.write_bytes(data)
                return Rewritten(functions=done, alone=len(alone))
        if not refused - alone:
            break
        alone |= refused
    complaint = _COMPLAINT.search(result.output)
    what = complaint.group(1) if complaint else f"it ended with status {result.status}"
    raise WorkError(f"BOLT cannot rewrite this kernel: {what}", "see the log, or use `propeller`")


def _shown(kernel: Vmlinux, tables: CodeTables) -> tuple[bytes, tuple[Section, Section]]:
    """The kernel that BOLT is shown, and its tables of anchors and of jumps.

    Jumps by features of the processor are to BOLT what those of static keys are: code that the
    kernel may patch to a jump or to none. It is shown them as leading to where they then lead.
    """
    data = bytearray(kernel.data)
    for each in tables.features:
        code_tables.lead(data, kernel, each.site + 1, each.target)

    def anchors(address: int) -> bytes:
        return b"".join(
            struct.pack("<i", anchor - address - 4 * index)
            for index, anchor in enumerate(tables.anchors)
        )

    def jumps(address: int) -> bytes:
        entries = bytearray()
        for each in tables.jumps:
            field = address + len(entries)
            entries += KEY.pack(each.site - field, each.target - field - 4, 0)
        return bytes(entries)

    contents = {_LISTED: anchors, **({_JUMPS: jumps} if tables.jumps else {})}
    symbols = dict.fromkeys(KEY_SYMBOLS, _JUMPS) if tables.jumps else {}
    shown, added = Vmlinux(bytes(data)).with_sections(
        contents, tables.sections | {_LISTED}, symbols
    )
    return shown, (added[_LISTED], added.get(_JUMPS, _NO_JUMPS))


def _jumps(data: bytes, table: Section) -> Sequence[Jump]:
    """The jumps of a kernel that BOLT wrote."""
    content = data[table.position : table.position + table.size]
    return [
        Jump(field + site, field + 4 + target)
        for index, (site, target, _) in enumerate(KEY.iter_unpack(content))
        for field in (table.address + KEY.size * index,)
    ]


def profiled_functions(counts: str) -> frozenset[str]:
    """The functions that a profile names, as BOLT calls them."""
    found: set[str] = set()
    for line in counts.splitlines():
        fields = line.split(" ")
        if len(fields) >= 6:
            found.update(fields[at + 1] for at in (0, 3) if fields[at] == "1")
    return frozenset(found)


def outside_patched(counts: str, kernel: Vmlinux, tables: CodeTables) -> Iterator[str]:
    """The lines of a profile without those inside what the kernel patched before it ran: BOLT would
    take the whole profile of the function for that of another build."""
    starts = {name: each.address for each in kernel.functions for name in _bolt_names(each)}
    inside = {at for start, size in tables.replaced for at in range(start + 1, start + size)}
    for line in counts.splitlines(keepends=True):
        fields = line.split(" ")
        places = (
            starts[fields[at + 1]] + int(fields[at + 2], 16)
            for at in (0, 3)
            if len(fields) >= 6 and fields[at] == "1" and fields[at + 1] in starts
        )
        if inside.isdisjoint(places):
            yield line


def _bolt_names(function: Function) -> Iterator[str]:
    yield function.bolt_name
    yield from function.names


def may_move(function: Function, candidates: Collection[str]) -> bool:
    return any(name in candidates for name in function.names) and not any(
        name.startswith(_NOT_OF_C) for name in function.names
    )


def fixed(kernel: Vmlinux, tables: CodeTables, functions: Sequence[Function]) -> set[int]:
    """The functions whose inside something refers to in a way that cannot be kept up to date: by
    what the kernel patches to a jump, or by an address in code or data."""
    found: set[int] = set()
    known_jumps = {each.site for each in tables.features}
    for each in tables.patched:
        if each.address in known_jumps:
            continue
        if each.branches and (function := kernel.function_at(each.address)):
            found.add(function.address)
    starts = [each.address for each in functions]

    def inside(address: int) -> Function | None:
        index = bisect_right(starts, address) - 1
        return functions[index] if index >= 0 and address < functions[index].end else None

    known = {each.field for each in tables.references if each.absolute}
    for section in kernel.sections.values():
        if section.allocated and not section.code:
            content = kernel.content(section)
            usable = content[: len(content) // 8 * 8]
            for index, (value,) in enumerate(struct.iter_unpack("<Q", usable)):
                function = inside(value)
                if function is None or value == function.address:
                    continue
                if section.address + 8 * index not in known:
                    found.add(function.address)
    kept = {each.value for each in tables.pushed}
    for function in functions:
        code = kernel.at(function.address, function.size)
        for value in _addresses_in(code, function):
            if function.address < value < function.end and value not in kept:
                found.add(function.address)
    return found


def _addresses_in(code: bytes, function: Function) -> Iterator[int]:
    """The values of 4 bytes in PUSH and MOV that may be addresses near those of a function."""
    top = (function.address >> 24) & 0xFF
    at = code.find(top, 4)
    while at >= 0:
        start = at - 3
        # MOV has up to 6 bytes that say where to.
        before = code[max(0, start - 8) : start]
        if before[-1] == 0x68 or _MOVE.search(before):
            yield function.address & ~0xFFFFFFFF | int.from_bytes(code[start : at + 1], "little")
        at = code.find(top, at + 1)


def _refused(kernel: Vmlinux, output: str) -> set[int]:
    """The functions in which BOLT sees other instructions than a table does."""
    found: set[int] = set()
    for match in _NOT_THERE.finditer(output):
        function = kernel.function_at(int(match.group(1), 16))
        if function is not None:
            found.add(function.address)
    return found


def _moved(data: bytes, table: Section, anchors: Sequence[int]) -> Mapping[int, int]:
    """Where the anchors are in a kernel that BOLT wrote."""
    content = data[table.position : table.position + table.size]
    distances = struct.iter_unpack("<i", content)
    return {
        anchor: table.address + 4 * index + distance
        for index, (anchor, (distance,)) in enumerate(zip(anchors, distances, strict=True))
    }


def _put_back(kernel: Vmlinux, moved: bytes) -> bytearray:
    """The kernel's own file with the sections that are loaded as BOLT wrote them."""
    data = bytearray(kernel.data)
    for each in kernel.sections.values():
        if each.allocated:
            span = slice(each.position, each.position + each.size)
            data[span] = moved[span]
    return data


def torn(
    kernel: Vmlinux, data: bytearray, tables: CodeTables, moved: Mapping[int, int]
) -> set[int]:
    """The functions in which instructions that tables point to are not what they were."""
    found: set[int] = set()
    sizes = {
        **dict(tables.replaced),
        **dict.fromkeys(tables.calls, _CALL_BYTES),
        **{each.site: 1 for each in tables.features},  # BOLT was shown another target
    }
    for anchor in tables.anchors:
        function = kernel.function_at(anchor)
        if function is None:
            continue
        size, now = sizes.get(anchor, 2), moved[anchor]
        position = kernel.position(now)
        inside = range(function.address - anchor, function.end - anchor)
        if not same_code(
            kernel.at(anchor, size), bytes(data[position : position + size]), now - anchor, inside
        ):
            found.add(function.address)
    return found


def same_code(old: bytes, new: bytes, moved: int, inside: range) -> bool:
    """Whether code is the same, and calls the same: what BOLT drops leaves something else there.

    Args:
        moved: by so many bytes.
        inside: where the function is, from the code on: what it has there may have moved, too.
    """
    at = start = 0
    if old[:1] == b"\x2e" and new[:1] in (b"\xe8", b"\xe9"):
        # A call of a retpoline has a prefix that makes space, which BOLT leaves out.
        old, moved, start = old[1:], moved - 1, 1
    while at < len(old):
        opcode = next(
            (each for each in _WITH_DISTANCE if old[at:].startswith(each)), old[at : at + 1]
        )
        if not new[at:].startswith(opcode):
            return False
        at += len(opcode)
        if opcode in _WITH_DISTANCE:
            was, now = (
                int.from_bytes(code[at : at + 4], "little", signed=True) for code in (old, new)
            )
            at += 4
            whole = at <= min(len(old), len(new))
            if whole and was != now + moved and start + at + was not in inside:
                return False
    return True
