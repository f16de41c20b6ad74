"""Which program a name means, and what identifies it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import EnvironmentLack, InputError
from mepof.process import look_again
from mepof.toolchain.named import select

CLANG = ("clang", "ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-profdata")
GCC = ("gcc", "ld.bfd", "ar", "nm", "objcopy")
X86 = arch.get("x86-64")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The last directory on PATH, after one that may have links to what starts compilers."""
    real, links = tmp_path / "real", tmp_path / "links"
    for directory in (real, links):
        directory.mkdir()
    monkeypatch.setenv("PATH", f"{links}::{real}")
    monkeypatch.setattr(arch, "machine", lambda: "x86_64")
    look_again()
    yield real
    look_again()


def script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


def install(directory: Path, *names: str, version: str = "22.1.8", suffix: str = "") -> None:
    for name in names:
        says = f"echo '{name} version {version} (GCC) {version}'"
        script(directory / f"{name}{suffix}", says)


def link(directory: Path, launcher: str, *names: str) -> Path:
    """Links of these names, and the program that they lead to, which would not answer."""
    program = directory.parent / "launcher" / launcher
    program.parent.mkdir(exist_ok=True)
    script(program, "exit 1")
    for name in names:
        (directory / name).symlink_to(f"../launcher/{launcher}")
    return program


@pytest.mark.parametrize("launcher", ["ccache", "distcc", "icecc", "sccache"])
@pytest.mark.parametrize(("name", "tools"), [("clang-22", CLANG), ("gcc-12", GCC)])
def test_a_link_to_what_starts_compilers_means_the_compiler_behind_it(
    machine: Path, launcher: str, name: str, tools: tuple[str, ...]
) -> None:
    install(machine, *tools)
    script(machine / name, f"echo '{name} version 22.1.8 (GCC) 12.2.0'")
    install(machine, *(each for each in tools if each not in name), suffix=f"-{name[-2:]}")
    plain = select(name)
    assert plain.tool("compiler", X86) == name
    expected = plain.identity(X86)
    link(machine.parent / "links", launcher, name, tools[0])
    look_again()
    assert select(name).tool("compiler", X86) == str(machine / name)
    assert select(name).identity(X86) == expected
    # The compiler behind it counts, not what starts it.
    script(machine / name, f"echo '{name} version 22.1.8 (GCC) 12.2.0'", "# rebuilt")
    look_again()
    assert select(name).identity(X86) != expected


def test_a_link_with_no_compiler_behind_it_is_none(machine: Path) -> None:
    install(machine, *GCC)
    link(machine.parent / "links", "ccache", "gcc-13", "clang-22")
    assert select("gcc").name == "gcc"
    with pytest.raises(EnvironmentLack, match="gcc-13 is not installed"):
        select("gcc-13")


def test_what_starts_compilers_may_be_named_itself(machine: Path) -> None:
    """No toolchain is called so, and a program that is looked for is found."""
    from mepof.toolchain.programs import find

    program = link(machine.parent / "links", "ccache", "ccache")
    assert program.is_file() and find("ccache") == str(machine.parent / "links" / "ccache")


@pytest.mark.parametrize(("family", "tool"), [("clang", "clang-22"), ("gcc", "gcc")])
def test_a_directory_of_such_links_is_not_that_of_the_compiler(
    machine: Path, family: str, tool: str
) -> None:
    links = machine.parent / "links"
    install(machine, *CLANG, *GCC, "clang-22")
    program = link(links, "ccache", tool)
    with pytest.raises(EnvironmentLack, match=f"{links} does not have {family}") as caught:
        select(f"{family}:{links}")
    assert caught.value.remedy == (
        f"{tool} there is a link to {program}, which starts another one: name the directory of "
        f"that, as in {family}:{machine}"
    )


@pytest.mark.parametrize("kind", ["script", "link"])
def test_the_identity_of_a_wrapper_is_that_of_what_compiles_too(
    machine: Path, tmp_path: Path, kind: str
) -> None:
    """As in Android's prebuilt releases: `clang` starts `clang.real`."""
    prebuilt = tmp_path / "clang-r563880" / "bin"
    prebuilt.mkdir(parents=True)
    install(prebuilt, *CLANG, version="21.0.0")
    real = prebuilt / "clang-21"
    wrapper = [f'exec {real} "$@"'] if kind == "script" else []

    def release(note: str) -> str:
        script(
            real,
            f"# {note}",
            f"""[ "$1" = "-###" ] && echo ' "{real}" "-cc1" "-triple"' && exit""",
            "echo 'Android clang version 21.0.0 (r563880)'",
        )
        (prebuilt / "clang").unlink()
        if wrapper:
            script(prebuilt / "clang", *wrapper)
        else:
            (prebuilt / "clang").symlink_to(real.name)
        look_again()
        found = select(f"clang:{prebuilt}")
        assert found.compiler_content(X86) is not None
        return found.identity(X86)["clang"]

    first, second = release("one"), release("another")
    assert first != second
    # A link is the compiler itself, which counts once.
    assert first.count(", ") == len(wrapper) + 1


def test_shared_libraries_need_not_be_executable_to_count(machine: Path, tmp_path: Path) -> None:
    install(machine, *GCC, version="14.2.0")
    library = tmp_path / "libisl.so.23"
    script(machine / "ldd", f"echo 'libisl.so.23 => {library} (0x00007f0000000000)'")
    seen = []
    for content in ("0.26", "0.27"):
        library.write_text(content)
        library.chmod(0o644)
        look_again()
        seen.append(select("gcc").identity()["gcc"])
    assert seen[0] != seen[1]


@pytest.mark.parametrize(("tools", "right"), [(CLANG, "clang"), (GCC, "gcc")])
def test_a_directory_without_a_kind_is_told_how_to_write_it(
    machine: Path, tmp_path: Path, tools: tuple[str, ...], right: str
) -> None:
    install(machine, *GCC)
    inside = tmp_path / "own"
    inside.mkdir()
    install(inside, *tools)
    with pytest.raises(InputError, match="does not say what kind of toolchain") as caught:
        select(str(inside))
    assert caught.value.remedy == f"write {right}:{inside}"
    with pytest.raises(InputError) as caught:
        select("./nothing")
    assert caught.value.remedy == "write clang:./nothing or gcc:./nothing"
