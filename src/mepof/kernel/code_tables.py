"""The tables of an x86-64 kernel that point into its code, and what they say once that has moved.

An *anchor* is the start of an instruction that a table points to, or to a byte of. Formats:
``arch/x86/include/asm/{asm,extable,alternative,bug,runtime-const}.h``,
``include/asm-generic/bug.h`` and ``arch/x86/include/asm/paravirt.h``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mepof.errors import WorkError
from mepof.kernel.vmlinux import Function, Section, Vmlinux

#: The releases whose tables have these formats.
FIRST, LAST = (6, 1), (7, 0)

_EXCEPTIONS = "__ex_table"
_ALTERNATIVES, _REPLACEMENTS = ".altinstructions", ".altinstr_replacement"
_BUGS, _PARAVIRT = "__bug_table", ".parainstructions"
_RETPOLINES = ".retpoline_sites"
# Jumps to the thunk that returns.
RETURNS = ".return_sites"
# Nothing but distances to instructions, each from its own field.
_DISTANCES = (
    *(".smp_locks", _RETPOLINES, RETURNS, ".call_sites"),
    *(".ibt_endbr_seal", ".cfi_sites", ".kcfi_traps"),
)
_RUNTIME_CONSTANTS = ("runtime_ptr_", "runtime_shift_")
# The symbols of the jumps of static keys, and an entry: two distances, and that of the key.
KEY_SYMBOLS = ("__start___jump_table", "__stop___jump_table")
KEY = struct.Struct("<iiq")
# Those of static calls, and an entry: a distance, and that of the key.
_CALL_SYMBOLS = ("__start_static_call_sites", "__stop_static_call_sites")
_CALL = struct.Struct("<ii")
# A jump with a distance of 4 bytes.
_JUMP, _JUMP_BYTES, _SHORT_JUMP = b"\xe9", 5, b"\xeb"
# TESTB of a byte at an address, JNE and JMP.
_TEST = re.compile(rb"\xf6(?:\x04\x25|\x05)[\s\S]{4}[\s\S]\x0f\x85([\s\S]{4})\xe9([\s\S]{4})")
_MAX_TEST_BYTES = 19
_PUSH_AND_IRET = re.compile(rb"\x68([\s\S]{4})\x48\xcf")
_PUSHED = struct.Struct("<I")
_DISTANCE, _ADDRESS = struct.Struct("<i"), struct.Struct("<Q")
_EXCEPTION = struct.Struct("<iii")
# Of an alternative: two distances, what decides, and at the end the lengths of both.
_ALTERNATIVE_SIZES = (14, 12)
_BUG_SIZES = (12, 8, 16)
_PARAVIRT_STRIDE = 16
# Of the instructions by which a kernel reports a bug: UD2, and UD1 with its prefixes.
_INVALID = (b"\x0f\x0b", b"\x0f\xb9", b"\x67\x48\x0f\xb9", b"\x67\x0f\xb9")


@dataclass(frozen=True)
class Reference:
    """A field of a table that points to code.

    Attributes:
        field: its address.
        anchor: the start of the instruction that it points to.
        inside: bytes from there to where it points.
        absolute: it is an address of 8 bytes; otherwise a distance of 4, from itself.
    """

    field: int
    anchor: int
    inside: int = 0
    absolute: bool = False


@dataclass(frozen=True)
class Patched:
    """Instructions that the kernel replaces as one while it boots.

    Attributes:
        branches: they, or what replaces them, may jump.
        replacement: the address of what replaces them.
    """

    address: int
    size: int
    branches: bool
    replacement: int = 0
    replacement_size: int = 0


@dataclass(frozen=True)
class Jump:
    """A jump that the kernel patches to one, or from one to nothing.

    Attributes:
        site: where it is.
        target: where it leads.
    """

    site: int
    target: int


@dataclass(frozen=True)
class FeatureJump(Jump):
    """A jump that the kernel patches by what the processor can do. Until then it leads to code
    elsewhere that finds out.

    Attributes:
        elsewhere: the address of that code.
        targets: the distances of jumps to ``target``: their addresses.
        onwards: that of the jump to what follows the site.
    """

    elsewhere: int
    targets: tuple[int, ...]
    onwards: int


@dataclass(frozen=True)
class Pushed:
    """A PUSH of the address that the IRET behind it goes on at (``iret_to_self`` of
    ``arch/x86/include/asm/sync_core.h``).

    Attributes:
        value: what it pushes.
        target: where that leads.
    """

    instruction: int
    value: int
    target: int


@dataclass(frozen=True)
class CodeTables:
    """What the tables of a kernel say.

    Attributes:
        sections: the names of these tables, except for that of jumps.
        keys: the jumps of static keys, in the order of their table.
        calls: where static calls are, in a table that BOLT keeps up to date.
    """

    sections: frozenset[str]
    references: tuple[Reference, ...]
    patched: tuple[Patched, ...]
    retpolines: tuple[Patched, ...]
    keys: tuple[Jump, ...]
    features: tuple[FeatureJump, ...]
    calls: tuple[int, ...] = ()
    pushed: tuple[Pushed, ...] = ()

    @property
    def replaced(self) -> tuple[tuple[int, int], ...]:
        """The address and the size of what the kernel replaces while it boots, but for jumps and
        static calls."""
        retpolines = ((each.address, each.size) for each in self.retpolines)
        return (*((each.address, each.size) for each in self.patched), *retpolines)

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Those of keys and of features."""
        return (*self.keys, *self.features)

    @property
    def anchors(self) -> tuple[int, ...]:
        """Where the tables and pushed addresses point to, and what pushes, sorted."""
        pushed = (at for each in self.pushed for at in (each.instruction, each.target))
        return tuple(sorted({*(each.anchor for each in self.references), *self.calls, *pushed}))


def read(kernel: Vmlinux) -> CodeTables:
    """Read the tables of a kernel.

    Raises:
        WorkError: one of them has an unknown format.
    """
    names: set[str] = set()
    references: list[Reference] = []
    patched: tuple[Patched, ...] = ()
    retpolines: tuple[Patched, ...] = ()
    features: tuple[FeatureJump, ...] = ()
    for name, section in kernel.sections.items():
        if not section.allocated:
            continue
        if name in _DISTANCES:
            found = _distances(kernel, section, 4)
            if name == _RETPOLINES:
                retpolines = tuple(_retpoline(kernel, each.anchor) for each in found)
        elif name == _EXCEPTIONS:
            fixups = (
                replace(each, anchor=_past_jumps(kernel, each.anchor))
                for each in _distances(kernel, section, 12, 4)
            )
            found = [*_distances(kernel, section, 12), *fixups]
        elif name == _ALTERNATIVES:
            stride, patched = _alternatives(kernel, section)
            features = tuple(_feature_jumps(kernel, patched))
            found = _distances(kernel, section, stride)
        elif name == _BUGS:
            found = _distances(kernel, section, _bug_size(kernel, section))
        elif name == _PARAVIRT:
            found = _addresses(kernel, section)
        elif name.startswith(_RUNTIME_CONSTANTS):
            found = [_in_instruction(kernel, name, each) for each in _distances(kernel, section, 4)]
        else:
            continue
        names.add(name)
        references += found
    return CodeTables(
        frozenset(names),
        tuple(references),
        patched,
        retpolines,
        tuple(_key_jumps(kernel)),
        features,
        tuple(_static_calls(kernel)),
    )


def write(
    data: bytearray,
    kernel: Vmlinux,
    tables: CodeTables,
    moved: Mapping[int, int],
    jumps: Sequence[Jump],
) -> None:
    """Make the tables point to where their instructions are now.

    Args:
        data: the kernel's file, in which the code has moved.
        kernel: as it was before.
        moved: where anchors are now; what is missing has not moved.
        jumps: what has become of those of the tables.
    """
    for each in tables.references:
        now = moved.get(each.anchor, each.anchor) + each.inside
        at = kernel.position(each.field)
        if each.absolute:
            _ADDRESS.pack_into(data, at, now)
        else:
            _DISTANCE.pack_into(data, at, now - each.field)
    for pushed in tables.pushed:
        instruction, target = (moved.get(at, at) for at in (pushed.instruction, pushed.target))
        _PUSHED.pack_into(data, kernel.position(instruction) + 1, target & 0xFFFFFFFF)
    keys, features = jumps[: len(tables.keys)], jumps[len(tables.keys) :]
    start = kernel.symbol(KEY_SYMBOLS[0]) or 0
    for index, key in enumerate(keys):
        field = start + KEY.size * index
        _DISTANCE.pack_into(data, kernel.position(field), key.site - field)
        _DISTANCE.pack_into(data, kernel.position(field + 4), key.target - field - 4)
    for was, jump in zip(tables.features, features, strict=True):
        lead(data, kernel, jump.site + 1, was.elsewhere)
        for field in was.targets:
            lead(data, kernel, field, jump.target)
        lead(data, kernel, was.onwards, jump.site + _JUMP_BYTES)
    if _EXCEPTIONS in tables.sections:
        _sort_exceptions(data, kernel.sections[_EXCEPTIONS])


def pushes(kernel: Vmlinux, functions: Iterable[Function]) -> Iterator[Pushed]:
    """The addresses inside of functions that they push themselves."""
    for function in functions:
        for found in _PUSH_AND_IRET.finditer(kernel.at(function.address, function.size)):
            low = int.from_bytes(found.group(1), "little")
            value = function.address & ~0xFFFFFFFF | low
            if function.address < value < function.end:
                target = _past_jumps(kernel, value)
                yield Pushed(function.address + found.start(), value, target)


def lead(data: bytearray, kernel: Vmlinux, field: int, target: int) -> None:
    """Let the jump whose distance is at an address lead to a target."""
    _DISTANCE.pack_into(data, kernel.position(field), target - field - 4)


def _key_jumps(kernel: Vmlinux) -> Iterator[Jump]:
    for field, (site, target, _) in _entries(kernel, KEY_SYMBOLS, KEY):
        yield Jump(field + site, field + 4 + target)


def _static_calls(kernel: Vmlinux) -> Iterator[int]:
    for field, (site, _) in _entries(kernel, _CALL_SYMBOLS, _CALL):
        yield field + site


def _entries(
    kernel: Vmlinux, symbols: tuple[str, str], form: struct.Struct
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The addresses and the fields of the entries between two symbols."""
    start, stop = (kernel.symbol(name) for name in symbols)
    if start is None or stop is None or start == stop:
        return
    for index, fields in enumerate(form.iter_unpack(kernel.at(start, stop - start))):
        yield start + form.size * index, fields


def _feature_jumps(kernel: Vmlinux, patched: Sequence[Patched]) -> Iterator[FeatureJump]:
    """The jumps that ``static_cpu_has`` makes (``arch/x86/include/asm/cpufeature.h``): to a test
    of the processor's features. They are replaced by jumps to where one is missing, or by
    nothing."""
    replaced: dict[int, list[Patched]] = {}
    for each in patched:
        replaced.setdefault(each.address, []).append(each)
    for site, entries in replaced.items():
        sizes = {each.size for each in entries} | {
            each.replacement_size for each in entries if each.replacement_size
        }
        jumps = [each.replacement for each in entries if each.replacement_size]
        if sizes != {_JUMP_BYTES} or any(kernel.at(at, 1) != _JUMP for at in (site, *jumps)):
            continue
        elsewhere = _led_to(kernel, site + 1)
        found = _TEST.match(kernel.at(elsewhere, _MAX_TEST_BYTES))
        if found is None:
            continue
        onwards, missing = (elsewhere + found.start(group) for group in (1, 2))
        targets = (missing, *(each + 1 for each in jumps))
        leads = {_led_to(kernel, each) for each in targets}
        on, after = (
            _past_jumps(kernel, at) for at in (_led_to(kernel, onwards), site + _JUMP_BYTES)
        )
        if len(leads) == 1 and on == after:
            yield FeatureJump(site, leads.pop(), elsewhere, targets, onwards)


def _led_to(kernel: Vmlinux, field: int) -> int:
    """Where the jump leads whose distance is at an address."""
    distance: int = _DISTANCE.unpack(kernel.at(field, 4))[0]
    return field + 4 + distance


def _distances(kernel: Vmlinux, section: Section, stride: int, offset: int = 0) -> list[Reference]:
    content = kernel.content(section)
    if len(content) % stride:
        raise _unknown(section.name)
    return [
        Reference(field, field + _DISTANCE.unpack_from(content, at)[0])
        for at in range(offset, len(content), stride)
        for field in (section.address + at,)
    ]


def _retpoline(kernel: Vmlinux, address: int) -> Patched:
    """The call or jump of a retpoline: with a prefix, or on a condition, it is a byte longer."""
    return Patched(address, 5 if kernel.at(address, 1) in (b"\xe8", b"\xe9") else 6, False)


def _past_jumps(kernel: Vmlinux, address: int) -> int:
    """Where the jumps at an address lead, if there are any: BOLT may do without them."""
    seen = set[int]()
    while address not in seen:
        seen.add(address)
        code = kernel.at(address, _JUMP_BYTES)
        if code[:1] == _JUMP:
            address = _led_to(kernel, address + 1)
        elif code[:1] == _SHORT_JUMP:
            address += 2 + int.from_bytes(code[1:2], "little", signed=True)
    return address


def _addresses(kernel: Vmlinux, section: Section) -> list[Reference]:
    content = kernel.content(section)
    return [
        Reference(section.address + at, _ADDRESS.unpack_from(content, at)[0], absolute=True)
        for at in range(0, len(content) - 9, _PARAVIRT_STRIDE)
    ]


def _alternatives(kernel: Vmlinux, section: Section) -> tuple[int, tuple[Patched, ...]]:
    """The size of an entry, and what is replaced."""
    content, code = kernel.content(section), kernel.sections.get(_REPLACEMENTS)
    for size in _ALTERNATIVE_SIZES:
        if len(content) % size:
            continue
        found = list(_patched(kernel, section, content, size, code))
        if None not in found:
            return size, tuple(each for each in found if each is not None)
    raise _unknown(section.name)


def _patched(
    kernel: Vmlinux, section: Section, content: bytes, size: int, code: Section | None
) -> Iterator[Patched | None]:
    """What each entry replaces; None for one that makes no sense with entries of this size."""
    for at in range(0, len(content), size):
        original, replacement = struct.unpack_from("<ii", content, at)
        original += section.address + at
        replacement += section.address + at + 4
        length, new_length = content[at + size - 2], content[at + size - 1]
        inside = code is not None and code.address <= replacement <= code.end - new_length
        if new_length > length or not (inside or not new_length) or not length:
            yield None
            return
        try:
            old = kernel.at(original, length)
            new = kernel.at(replacement, new_length) if new_length else b""
        except WorkError:
            yield None
            return
        yield Patched(original, length, _jumps(old) or _jumps(new), replacement, new_length)


def _jumps(code: bytes) -> bool:
    """Whether code begins with a direct jump."""
    return bool(code) and (
        code[0] in (0xE9, 0xEB)
        or 0x70 <= code[0] <= 0x7F
        or (code[0] == 0x0F and len(code) > 1 and 0x80 <= code[1] <= 0x8F)
    )


def _bug_size(kernel: Vmlinux, section: Section) -> int:
    """The size of an entry, which depends on the configuration and the release."""
    for size in _BUG_SIZES:
        if section.size % size == 0 and all(
            kernel.at(each.anchor, 4).startswith(_INVALID)
            for each in _distances(kernel, section, size)
        ):
            return size
    raise _unknown(section.name)


def _in_instruction(kernel: Vmlinux, name: str, value: Reference) -> Reference:
    """A reference to the value in an instruction, by the start of that."""
    code = kernel.at(value.anchor - 3, 3)
    if name.startswith("runtime_ptr_") and code[1] in (0x48, 0x49) and 0xB8 <= code[2] <= 0xBF:
        inside = 2  # MOV of 8 bytes to a register
    elif name.startswith("runtime_shift_") and code[1] in (0xC1, 0xD3) and 0xE8 <= code[2] <= 0xEF:
        inside = 3 if 0x40 <= code[0] <= 0x4F else 2  # SHR by a number
    else:
        raise _unknown(name)
    return Reference(value.field, value.anchor - inside, inside)


def _sort_exceptions(data: bytearray, section: Section) -> None:
    """Sort the exception table by address; its distances are from their own fields."""
    entries = []
    for index in range(section.size // 12):
        at = 12 * index
        instruction, fixup, kind = _EXCEPTION.unpack_from(data, section.position + at)
        entries.append((instruction + at, fixup + at, kind))
    entries.sort(key=lambda each: each[0])
    for index, (instruction, fixup, kind) in enumerate(entries):
        at = 12 * index
        _EXCEPTION.pack_into(data, section.position + at, instruction - at, fixup - at, kind)


def _unknown(name: str) -> WorkError:
    return WorkError(f"the kernel's table {name} has an unknown format")
