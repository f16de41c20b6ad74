"""The tables of a linked kernel, made of some tuples."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from writers.elf import ALLOC, CODE, Section, elf64

from mepof.errors import WorkError
from mepof.kernel import integrity

TEXT: Section = (".text", 0x1000, 0x4000, CODE)
INIT: Section = (".init.text", 0x8000, 0x1000, CODE)
EXCEPTIONS, UNWINDER = 0x6000, 0x7000


def exceptions(*entries: tuple[int, int], rest: bytes = bytes([1, 0, 0, 0])) -> bytes:
    """Pairs of the addresses of an instruction and of its fixup, as the kernel has them."""
    data = b""
    for raising, leading in entries:
        at = EXCEPTIONS + len(data)
        data += struct.pack("<ii", raising - at, leading - at - 4) + rest
    return data


def unwinder(*addresses: int) -> bytes:
    return b"".join(struct.pack("<i", a - UNWINDER - 4 * n) for n, a in enumerate(addresses))


def image(contents: Mapping[str, bytes]) -> bytes:
    places = {"__ex_table": EXCEPTIONS, ".orc_unwind_ip": UNWINDER, ".orc_unwind": 0x7800}
    tables: list[Section] = [
        (name, places[name], len(data), ALLOC) for name, data in contents.items()
    ]
    return elf64([TEXT, INIT, *tables], {}, contents=contents)


def faults(directory: Path, contents: Mapping[str, bytes]) -> Sequence[str]:
    path = directory / "vmlinux"
    path.write_bytes(image(contents))
    return integrity.faults(path)


SOUND = {
    # From the very first and last byte of the text; one raises twice, and one is in init text.
    "__ex_table": exceptions(
        (0x1000, 0x4FFF), (0x2000, 0x1004), (0x2000, 0x1008), (0x8FFF, 0x8000)
    ),
    ".orc_unwind_ip": unwinder(0x1000, 0x1004, 0x1004, 0x9000),
    ".orc_unwind": bytes(4 * 6),
}


def test_a_kernel_whose_tables_fit_its_text_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, SOUND) == []


@pytest.mark.parametrize("entries", [1, 2, 3, 100])
def test_entries_may_have_no_data_as_on_arm64_before_5_17(tmp_path: Path, entries: int) -> None:
    pairs = [(0x1000 + 8 * n, 0x4000 + 8 * n) for n in range(entries)]
    assert faults(tmp_path, {"__ex_table": exceptions(*pairs, rest=b"")}) == []


@pytest.mark.parametrize("rest", [b"", bytes(4)])
def test_a_wrong_entry_of_many_is_found_in_either_size(tmp_path: Path, rest: bytes) -> None:
    pairs = [(0x1000 + 8 * n, 0x4000 + 8 * n) for n in range(100)]
    assert faults(tmp_path, {"__ex_table": exceptions(*pairs, (0x4000, 0x5000), rest=rest)}) != []


@pytest.mark.parametrize("contents", [{}, {"__ex_table": b""}, {"__ex_table": SOUND["__ex_table"]}])
def test_a_kernel_may_have_no_tables(tmp_path: Path, contents: Mapping[str, bytes]) -> None:
    assert faults(tmp_path, contents) == []


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (exceptions((0x0FFF, 0x1000)), "an instruction at 0xfff, where there is no code"),
        (exceptions((0x5000, 0x1000)), "an instruction at 0x5000, where there is no code"),
        (exceptions((0x1000, 0x5000)), "a fixup at 0x5000, where there is no code"),
        (exceptions((0x1000, 0x1004), (0x1008, 0x6000)), "a fixup at 0x6000, where"),
        (exceptions((0x2000, 0x1000), (0x1FFF, 0x1000)), "is not sorted at 0x1fff"),
        (exceptions((0x1000, 0x1004))[:-1], "ends within an entry"),
        (exceptions((0x1000, 0x1004), (0x2000, 0x1004))[:-4], "ends within an entry"),
    ],
)
def test_a_wrong_exception_table_is_a_fault(tmp_path: Path, table: bytes, what: str) -> None:
    (fault,) = faults(tmp_path, {**SOUND, "__ex_table": table})
    assert fault.startswith("the exception table ")
    assert what in fault


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        (((0x1000, 0x4FFF), (0x8FFF, 0x1004)), None),
        (((0x1000, 0x5000),), "a fixup at 0x5000, where there is no code"),
        (((0x2000, 0x1000), (0x1000, 0x1000)), "is not sorted at 0x1000"),
    ],
)
def test_the_exception_table_of_32_bit_arm_has_addresses(
    tmp_path: Path, entries: Sequence[tuple[int, int]], what: str | None
) -> None:
    table = b"".join(struct.pack("<II", *entry) for entry in entries)
    whole = bytearray(image({"__ex_table": table}))
    struct.pack_into("<H", whole, 18, 40)  # e_machine
    path = tmp_path / "vmlinux"
    path.write_bytes(whole)
    found = integrity.faults(path)
    assert found == [] if what is None else what in found[0]


def test_an_exception_table_that_the_kernel_sorts_may_be_unsorted(tmp_path: Path) -> None:
    tables = {**SOUND, "__ex_table": exceptions((0x2000, 0x1000), (0x1FFF, 0x1000))}
    assert len(faults(tmp_path, tables)) == 1
    assert integrity.faults(tmp_path / "vmlinux", sorts_at_boot=True) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({".orc_unwind_ip": unwinder(0x1000, 0x2000, 0x1FFF, 0x3000)}, "not sorted at 0x1fff"),
        ({".orc_unwind": bytes(3 * 6)}, "has 4 addresses and 18 bytes of entries"),
        ({".orc_unwind": bytes(4 * 6 + 1)}, "has 4 addresses and 25 bytes of entries"),
        ({".orc_unwind_ip": unwinder(0x1000)}, "has 1 addresses and 24 bytes of entries"),
        ({".orc_unwind_ip": SOUND[".orc_unwind_ip"] + b"\0"}, "ends within an address"),
    ],
)
def test_a_wrong_table_of_the_unwinder_is_a_fault(
    tmp_path: Path, changed: Mapping[str, bytes], what: str
) -> None:
    (fault,) = faults(tmp_path, {**SOUND, **changed})
    assert fault.startswith("the unwinder")
    assert what in fault


def test_faults_of_both_tables_are_reported(tmp_path: Path) -> None:
    wrong = {**SOUND, "__ex_table": b"?", ".orc_unwind": b""}
    assert len(faults(tmp_path, wrong)) == 2


def test_an_unwinder_without_entries_is_refused(tmp_path: Path) -> None:
    del (contents := dict(SOUND))[".orc_unwind"]
    with pytest.raises(WorkError, match=r"cannot be read as a kernel: '\.orc_unwind'"):
        faults(tmp_path, contents)


addresses = st.integers(0x1000, 0x4FFF)


@given(st.lists(st.tuples(addresses, addresses), min_size=2, max_size=20))
def test_a_table_is_sound_exactly_when_it_is_sorted(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]]
) -> None:
    directory = tmp_path_factory.getbasetemp()
    raising = [entry[0] for entry in entries]
    found = faults(directory, {"__ex_table": exceptions(*entries)})
    assert (found == []) == (raising == sorted(raising))
    assert faults(directory, {"__ex_table": exceptions(*sorted(entries))}) == []


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x07\x07" + b"\xff" * 90])
def test_a_file_that_is_not_elf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vmlinux"
    with pytest.raises(WorkError, match="cannot be read as a kernel"):
        integrity.faults(path)
    path.write_bytes(content)
    with pytest.raises(WorkError, match="cannot be read as a kernel"):
        integrity.faults(path)


def test_a_kernel_cut_off_anywhere_is_an_error_of_ours(tmp_path: Path) -> None:
    whole = image(SOUND)
    path = tmp_path / "vmlinux"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(WorkError):
            integrity.faults(path)


def test_a_damaged_kernel_never_escapes_as_another_error(tmp_path: Path) -> None:
    whole = image(SOUND)
    path = tmp_path / "vmlinux"
    for at in range(0, len(whole), 3):
        for value in (0, 0xFF):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with contextlib.suppress(WorkError):
                integrity.faults(path)
