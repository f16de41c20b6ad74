"""What objtool says, read from logs as kbuild writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.kernel.objtool import Unclean, Warned, warnings


def read(tmp_path: Path, *lines: str) -> list[str]:
    (tmp_path / "log").write_text("\n".join(lines))
    return [str(each) for each in sorted(warnings(tmp_path / "log"))]


def test_warnings_are_reported_without_what_another_compilation_changes(tmp_path: Path) -> None:
    said = (
        "kernel/sched/core.o: warning: objtool: schedule_tail.cold+0x1c8: unsupported instruction"
    )
    again = said.replace(".cold+0x1c8", "+0x3e")
    expected = ["kernel/sched/core.o: schedule_tail: unsupported instruction"]
    assert read(tmp_path, "  CC      kernel/sched/core.o", said, again) == expected


def test_what_clang_tells_the_linker_is_not_data_of_the_kernel(tmp_path: Path) -> None:
    where = "vmlinux.o: warning: objtool: .llvm.call-graph-profile+0x158"
    calls = f"{where}: data relocation to !ENDBR: x64_sys_call+0x158"
    assert read(tmp_path, calls, calls.replace(".llvm.call-graph-profile", ".data")) == [
        "vmlinux.o: .data: data relocation to !ENDBR: x64_sys_call"
    ]


def test_a_rebuilt_object_is_judged_again(tmp_path: Path) -> None:
    a = "fs/exec.o: warning: objtool: f+0x1: unreachable instruction"
    b = "vmlinux.o: warning: objtool: g+0x1: unreachable instruction"
    first = ("  CC      fs/exec.o", a, "  LD      vmlinux.o", "  OBJTOOL vmlinux.o", b)
    assert len(read(tmp_path, *first)) == 2
    (left,) = read(tmp_path, *first, "  CC      fs/exec.o")
    assert left.startswith("vmlinux.o: ")
    assert read(tmp_path, *first, "  CC      fs/exec.o", "  LD      vmlinux.o") == []
    assert len(read(tmp_path, *first, "  CC      fs/exec.ox", "  CC  fs/other.o")) == 2


def test_other_warnings_and_bytes_that_are_not_text_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe\nfs/a.c:1:2: warning: unused\nwarning: objtool: x\n")
    assert warnings(tmp_path / "log") == frozenset()


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("schedule_tail: unsupported instruction in callable function", {"schedule_tail"}),
        ("do_exec: copy_strings() is missing a __noreturn annotation", {"do_exec", "copy_strings"}),
        ("f() falls through to next function g()", {"f", "g"}),
        (".text: unreachable instruction", set()),
    ],
)
def test_a_warning_names_functions(text: str, functions: set[str]) -> None:
    assert Warned("fs/a.o", text).functions() == functions


def test_one_line_says_what_is_unclean() -> None:
    some = {Warned("fs/b.o", "g: y"), Warned("fs/a.o", "f: x"), Warned("fs/a.o", "f: y")}
    assert Unclean(some).message == "objtool warns about fs/a.o: f: x (and 2 more)"
