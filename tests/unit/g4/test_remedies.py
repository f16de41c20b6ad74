"""The remedies that errors of programs have."""

from __future__ import annotations

from pathlib import Path

import pytest

from .reading import VOCABULARY, errors

OPT = "opt /src pgo rand kbench.\n"

HELP = {
    "opr /src pgo rand kbench.": "did you mean `opt`?",
    "EVAL /a.img.": "did you mean `eval`?",
    "opt /src pgoo rand kbench.": "did you mean `pgo`?",
    "opt /src pgo rand kbench thinlto.": "did you mean `ThinLTO`?",
    "opt /src pgo xyz kbench.": "known: " + ", ".join(VOCABULARY.clicks),
    "set sead 1.": "did you mean `seed`?",
    "eval /a.img file set seed 1.": "is a `.` missing before `set`?",
    "build.": "write `build path option*.`",
    "build /my tree O2.": "write `build path option*.`; `;` separates the items of a list, and a "
    "path with blanks is in double quotes",
    "opt /src.": "write `opt path algorithm click app* option*.`",
    OPT + "eval optt.img file.": "did you mean `opt.img`?",
    "eval x.img file.": "name a result of an earlier statement, or write the path of a "
    "file with a `/`: `./x.img`",
    "goal geomen 8. eval /a;/b.": "did you mean `geomean`?",
    "goal worst -1 kernel_instrs. eval /a;/b.": "did you mean `kernel_instructions`?",
    "goal worst all. eval /a;/b.": "expected a percentage such as `8`, `0.5` or `-1`",
    "goal worst. eval /a;/b.": "write `goal quantity bound metric*.`",
    "goal worst -1 kernel_cycles. eval /a;/b.": "write `set core` before the `eval`, such as "
    "`set core zen4`",
    "set instrument 16m.": "a size is written `16M`, a percentage `16%`",
    "set toolchain ./llvm.": "write `clang:./llvm` or `gcc:./llvm`",
    "set arch arm.\nbuild /src.": "write `set toolchain gcc` before it",
    "set toolchain clang-16.\nopt /src autofdo rand kbench.": "write `set toolchain clang-19` "
    "before it",
    "set toolchain clang-13.": "known: clang-14 to clang-30",
    "set arch arm64. eval /a jni.": "leave it out, or write `set arch x86-64` before the statement",
    "opt /src pgo rand ./shop.xapk.": "install it (`adb install`, `adb install-multiple` of the "
    "APKs of one app, `bundletool` of a bundle), and name a file that lists its package "
    "(docs/android.md)",
    "opt /src pgo rand ./shop.txt.": "name the file that describes the app",
    "set arch amd64.": "did you mean `x86-64`?",
    "set arch x86_64.": "did you mean `x86-64`?",
    "set arch armhf.": "did you mean `arm`?",
    "set budget 90.": "expected a duration such as `90s`, `30m` or `2h`",
}


@pytest.mark.parametrize(("text", "expected"), HELP.items())
def test_an_error_has_a_remedy(text: str, expected: str) -> None:
    (error,) = errors(text)
    assert error.help == expected


def test_what_is_here_under_a_name_that_is_not_known_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".config").touch()
    (tmp_path / "debian.config").touch()
    (tmp_path / "clang-r522817").mkdir()
    for text, path in (
        ("set config .config.", "./.config"),
        ("set config slim+debian.config.", "./debian.config"),
        ("set toolchain clang-r522817.", "clang:./clang-r522817"),
    ):
        (error,) = errors(text)
        assert error.help is not None and f"`{path}`" in error.help
    for key in ("config", "toolchain"):
        (error,) = errors(f"set {key} {'x' * 300}.")
        assert error.message.startswith(f"unknown {key} `xxx")


def test_a_configuration_of_the_kernels_own_is_named_as_a_base() -> None:
    (error,) = errors("set config slim+tinyconfig.")
    assert error.message == "unknown config `tinyconfig`"
    assert error.help == (
        "one of the kernel's own is named in a file of yours: a line `# base: tinyconfig`"
    )
