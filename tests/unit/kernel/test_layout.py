"""The layout check, on kernels of some tuples."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from writers.elf import ALLOC, CODE, Section, elf64

from mepof.errors import WorkError
from mepof.kernel import layout

BOUNDS = {"_stext": 0x1000, "_etext": 0x5000, "__init_begin": 0x8000, "__init_end": 0xA000}
TEXT: Section = (".text", 0x1000, 0x4000, CODE)
INIT: Section = (".init.text", 0x8000, 0x1000, CODE)


def kernel(tmp_path: Path, *sections: Section, bounds: dict[str, int] = BOUNDS) -> layout.Layout:
    path = tmp_path / "vmlinux"
    path.write_bytes(elf64(sections, bounds))
    return layout.read(path)


def test_a_kernel_whose_code_is_where_it_belongs_has_no_fault(tmp_path: Path) -> None:
    data: Section = (".data", 0x6000, 0x100, ALLOC)
    debug: Section = (".debug_info", 0, 0x100, 0)
    made = kernel(tmp_path, TEXT, data, INIT, debug)
    assert layout.faults(made) == []
    assert [s.name for s in made.sections] == [".text", ".data", ".init.text"]


def test_text_is_its_functions_each_once_and_without_what_is_freed(tmp_path: Path) -> None:
    functions = [("one", 0x1000, 0x100), ("alias", 0x1000, 0x80), ("two", 0x2000, 0x30)]
    path = tmp_path / "vmlinux"
    path.write_bytes(elf64([TEXT, INIT], BOUNDS, [*functions, ("setup", 0x8000, 0x500)]))
    assert layout.read(path).text_bytes() == 0x130


@pytest.mark.parametrize(
    ("section", "what"),
    [
        ((".text.split.", 0x9000, 0x10, CODE), "freed after boot"),
        ((".text.hot.", 0x7FF8, 0x10, CODE), "freed after boot"),
        ((".text.hot.", 0x5000, 0x10, CODE), "outside the kernel's text 0x1000..0x5000"),
        ((".text.hot.", 0x4FF8, 0x10, CODE), "outside the kernel's text"),
        ((".text.hot.", 0xA000, 0x10, CODE), "outside the kernel's text"),
    ],
)
def test_misplaced_code_is_a_fault_that_names_it(
    tmp_path: Path, section: Section, what: str
) -> None:
    (fault,) = layout.faults(kernel(tmp_path, TEXT, INIT, section))
    assert fault.startswith(f"{section[0]} at {section[1]:#x}")
    assert what in fault


@pytest.mark.parametrize(
    "section",
    [
        (".text.hot.", 0x4000, 0x1000, CODE),  # up to the very end of the text
        (".altinstr_replacement", 0x9000, 0x10, CODE),
        (".exit.text", 0x9000, 0x10, CODE),
        (".head.text", 0x800, 0x10, CODE),
        (".text.split.", 0x9000, 0, CODE),  # empty
        (".orphan.data", 0x9000, 0x10, ALLOC),
        (".vectors", 0xFFFF0000, 0x20, CODE),
        (".stubs", 0xFFFF1000, 0x2AC, CODE),
    ],
)
def test_code_that_may_lie_there_is_not_a_fault(tmp_path: Path, section: Section) -> None:
    assert layout.faults(kernel(tmp_path, TEXT, INIT, section)) == []


@pytest.mark.parametrize("missing", BOUNDS)
def test_a_kernel_without_a_bound_is_refused(tmp_path: Path, missing: str) -> None:
    bounds = {name: value for name, value in BOUNDS.items() if name != missing}
    with pytest.raises(WorkError, match=f"has no symbol {missing}$"):
        kernel(tmp_path, TEXT, bounds=bounds)


def test_a_stripped_kernel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(elf64([TEXT], {}, symbol_table=False))
    with pytest.raises(WorkError, match="has no symbol table"):
        layout.read(path)


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF", b"\x7fELF\x07\x07" + b"\xff" * 90])
def test_a_file_that_is_not_elf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(content)
    with pytest.raises(WorkError, match="cannot be read as a kernel"):
        layout.read(path)


def test_a_missing_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="cannot be read as a kernel"):
        layout.read(tmp_path / "vmlinux")


def test_a_kernel_cut_off_anywhere_is_an_error_of_ours_or_whole(tmp_path: Path) -> None:
    whole = elf64([TEXT, INIT], BOUNDS)
    path = tmp_path / "vmlinux"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(WorkError):
            layout.read(path)


def test_a_damaged_kernel_never_escapes_as_another_error(tmp_path: Path) -> None:
    whole = elf64([TEXT, INIT], BOUNDS)
    path = tmp_path / "vmlinux"
    for at in range(0, len(whole), 3):
        for value in (0, 0xFF):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with contextlib.suppress(WorkError):
                layout.faults(layout.read(path))
