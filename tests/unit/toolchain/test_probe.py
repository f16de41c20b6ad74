from __future__ import annotations

from pathlib import Path

import pytest

from mepof import distribution
from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.package.protocol import FORMATS
from mepof.suite.cases import load_suite, suite_names
from mepof.toolchain.clang import Clang
from mepof.toolchain.probe import (
    TOOLS,
    Finding,
    Tool,
    look_for,
    parse_version,
    toolchain_tools,
    version_in,
)

MAKE = Tool("make", "kernel builds", (4, 0))
QEMU = Tool("qemu", "boots kernels", (10, 0), "qemu-system-x86", newer=True)
LLVM = [tool.command for tool in Clang.description.tools.values() if not tool.optional]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put(directory: Path, name: str, says: str = "") -> None:
    """An executable that says one thing, whatever it is asked."""
    program = directory / name
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}'\n")
    program.chmod(0o755)


def linker() -> Finding:
    """What is found of the toolchain's linker."""
    (tool,) = (tool for tool in toolchain_tools() if tool.purpose == "links kernels")
    return look_for(tool)


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ("Debian clang version 22.1.8 (1~deb12u1)", "22.1.8"),
        ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)", "10.0.2"),
        ("gcc (Debian 12.2.0-14) 12.2.0", "12.2.0"),
        ("*** Zstandard CLI (64-bit) v1.5.4, by Yann Collet ***", "1.5.4"),
        ("LLVM (http://llvm.org/):\n  Debian LLVM version 19.1.7", "19.1.7"),
        ("no version at all, 64 bits", None),
    ],
)
def test_a_version_is_read_from_what_programs_say(banner: str, version: str | None) -> None:
    assert version_in(banner) == version


def test_versions_compare_by_number_and_not_by_letter() -> None:
    assert parse_version("10.0") > parse_version("9.2.4")
    assert parse_version("1.07.1") > parse_version("1.06.95")


def test_a_tool_that_is_new_enough_is_ok(path: Path) -> None:
    put(path, "make", "GNU Make 4.3")
    finding = look_for(MAKE)
    assert (finding.state, finding.found, finding.remedy) == ("ok", "4.3", None)
    assert not finding.stops


@pytest.mark.parametrize(
    ("release", "words"), [("bookworm", "-t bookworm-backports "), ("trixie", "")]
)
def test_an_old_tool_comes_with_the_command_that_upgrades_it(
    release: str, words: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "os-release").write_text(f"ID=debian\nVERSION_CODENAME={release}\n")
    monkeypatch.setattr(distribution, "RELEASE", path / "os-release")
    put(path, "qemu", "QEMU emulator version 7.2.15")
    finding = look_for(QEMU)
    assert (finding.state, finding.found, finding.needed) == ("too old", "7.2.15", "≥ 10.0")
    assert finding.remedy == f"apt-get install {words}qemu-system-x86"
    assert finding.stops


def test_a_tool_that_is_not_installed_is_missing(path: Path) -> None:
    finding = look_for(MAKE)
    assert (finding.state, finding.found) == ("missing", None)
    assert finding.remedy == "apt-get install make"


def test_a_tool_that_does_not_report_its_version_is_broken(path: Path) -> None:
    put(path, "make", "Segmentation fault")
    assert look_for(MAKE).state == "broken"


def test_a_tool_that_is_not_a_program_is_broken(path: Path) -> None:
    (path / "make").write_bytes(b"\x7fELF of another machine")
    (path / "make").chmod(0o755)
    assert look_for(MAKE).state == "broken"


def test_a_missing_convenience_stops_nothing(path: Path) -> None:
    finding = look_for(Tool("ccache", "fast second builds", required=False))
    assert finding.state == "missing"
    assert not finding.stops


def test_the_newest_complete_toolchain_is_looked_at(path: Path) -> None:
    for tool in LLVM:
        put(path, f"{tool}-19", "version 19.1.7")
    put(path, "clang-22", "version 22.1.8")  # without a linker of its version
    known = toolchain_tools()
    assert [tool.command for tool in known if tool.required] == [f"{name}-19" for name in LLVM]
    # What only one algorithm needs is looked for, and may be missing.
    assert "llvm-bolt-19" in {tool.command for tool in known}
    assert (linker().name, linker().state) == ("ld.lld-19", "ok")


def test_an_incomplete_toolchain_reports_what_is_missing(path: Path) -> None:
    put(path, "clang-22", "version 22.1.8")
    finding = linker()
    assert (finding.name, finding.state) == ("ld.lld-22", "missing")
    assert finding.remedy == "apt-get install lld-22"


def test_unversioned_tools_count_when_there_are_no_others(path: Path) -> None:
    put(path, "clang", "clang version 13.0.1")
    put(path, "ld.lld", "LLD 13.0.1")
    assert (linker().name, linker().state) == ("ld.lld", "too old")


def test_without_any_compiler_setup_is_the_remedy(path: Path) -> None:
    assert (linker().name, linker().state) == ("ld.lld", "missing")
    assert linker().remedy == "make setup"


def test_the_programs_that_suites_take_or_are_built_with_are_looked_for() -> None:
    taken = {
        (Path(tool.path).name, tool.package)
        for name in suite_names()
        if (programs := load_suite(name).programs) is not None
        for tool in (*programs.tools, *programs.builders)
    }
    assert taken <= {(tool.command, tool.package) for tool in TOOLS if not tool.required}


def test_the_programs_that_write_packages_and_repositories_are_looked_for() -> None:
    written = {item for form in FORMATS.all().values() for item in form.programs}
    assert {("rpmbuild", "rpm"), ("zstd", "zstd")} <= written
    listed = {item for each in REPOSITORIES.all().values() for item in each.programs}
    assert {("createrepo_c", "createrepo-c"), ("repo-add", "pacman-package-manager")} <= listed
    assert written | listed <= {(tool.command, tool.package or tool.command) for tool in TOOLS}
