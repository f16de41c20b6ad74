"""What a program needs to run elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from platform import machine

import pytest

from mepof.errors import EnvironmentLack, InputError
from mepof.process import run
from mepof.toolchain.shared_libraries import closure, listed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF programs")


def test_a_program_comes_with_its_interpreter_and_all_that_the_linker_would_load() -> None:
    found = closure("/usr/bin/make", "make")
    assert Path("/usr/bin/make") in found
    assert any(path.name.startswith("ld-linux") for path in found)
    loaded = {word for word in run(["ldd", "/usr/bin/make"]).output.split() if word[0] == "/"}
    assert {Path(name).name for name in loaded} <= {path.name for path in found}
    assert all(path.is_file() for path in found)


@pytest.mark.skipif(not Path("/etc/ld-musl-x86_64.path").exists(), reason="needs Debian's musl")
def test_musl_has_a_loader_and_directories_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    run(["musl-gcc", tmp_path / "p.c", "-o", tmp_path / "p"])
    found = closure(str(tmp_path / "p"), None)
    cpu = machine()
    expected = {"p", f"ld-musl-{cpu}.so.1", f"ld-musl-{cpu}.path", "libc.so"}
    assert {path.name for path in found} == expected


def test_libraries_of_other_architectures_are_passed_over() -> None:
    text = """3 libs found in cache `/etc/ld.so.cache'
\tlibm.so.6 (libc6,AArch64, OS ABI: Linux 3.7.0) => /lib/aarch64-linux-gnu/libm.so.6
\tlibm.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libm.so.6
\tlibm.so.6 (libc6) => /lib/i386-linux-gnu/libm.so.6
"""
    for cpu in ("x86_64", "aarch64"):
        assert listed(text, cpu) == {"libm.so.6": Path(f"/lib/{cpu}-linux-gnu/libm.so.6")}


def test_a_missing_program_names_its_package() -> None:
    with pytest.raises(EnvironmentLack, match="/no/such is not installed") as caught:
        closure("/no/such", "such-tools")
    assert caught.value.remedy == "apt-get install such-tools"


def test_a_file_that_is_not_a_program_is_reported(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("text")
    with pytest.raises(InputError, match="is not an ELF program") as caught:
        closure(str(text), "such-tools")
    assert caught.value.remedy == "lay scripts by `files` or `directory`"


def test_a_missing_library_of_ones_own_program_names_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, library, program = (str(tmp_path / name) for name in ("x.c", "libgone.so", "x"))
    Path(source).write_text("int gone(void) { return 0; }\n")
    run(["gcc", "-shared", "-fPIC", source, "-o", library])
    Path(source).write_text("int gone(void); int main(void) { return gone(); }\n")
    run(["gcc", source, library, "-o", program])
    assert Path(library) in closure(program, None)
    run(["gcc", source, f"-L{tmp_path}", "-lgone", "-o", program])
    closure.cache_clear()
    with pytest.raises(InputError, match=r"x needs libgone\.so, which is not installed") as caught:
        closure(program, None)
    assert caught.value.message.endswith("x needs libgone.so, which is not installed")
    assert "`-Wl,-rpath`" in str(caught.value.remedy)
    # One of that name in the current directory is not where the loader looks.
    monkeypatch.chdir(tmp_path)
    closure.cache_clear()
    with pytest.raises(InputError, match=r"x needs libgone\.so, which is not installed"):
        closure(program, None)
    run(["gcc", source, f"-L{tmp_path}", "-lgone", "-Wl,-rpath,${ORIGIN}/", "-o", program])
    closure.cache_clear()
    assert Path(library) in closure(program, None)
    run(["gcc", source, f"-L{tmp_path}", "-lgone", "-o", program])
    closure.cache_clear()
    link = tmp_path / "link"
    link.symlink_to(program)
    with pytest.raises(InputError, match=r"link needs libgone\.so") as caught:
        closure(str(link), None)
    assert caught.value.remedy == f"name the program that it is a link to: {program}"
