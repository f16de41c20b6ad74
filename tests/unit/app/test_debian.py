"""Debian packages for guests: a script on PATH stands for apt-get."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
import time
from hashlib import sha256
from pathlib import Path

import pytest

from mepof.app import debian
from mepof.app.debian import package_files
from mepof.app.laid import Member
from mepof.errors import EnvironmentLack, InputError, WorkError

# Says what it is asked, and downloads by copying.
APT = """#!/bin/sh
echo "$*" >> {root}/asked
case "$*" in
*"--simulate nothing") echo "E: Unable to locate package nothing"; exit 100 ;;
*"--simulate unmet") echo " unmet : Depends: libx (>= 2) but it is not installable"; exit 100 ;;
*"--simulate foes") echo " foes : Conflicts: tool"; echo "E: broken packages"; exit 100 ;;
*--simulate*)
    echo "Inst libx (2:1.0-1 Debian:12/stable [amd64])"
    case "$*" in
    *"tool ucf"*)
        grep -q "^Package: libllvm$" {root}/store/cache/packages/amd64/status ||
            echo "Inst libllvm (14 Debian:12/stable [amd64])" ;;
    esac
    echo "Inst tool (3 Debian:12/stable [all])"
    echo "Conf tool (3 Debian:12/stable [all])" ;;
*--download-only*)
    test -e {root}/offline && {{ echo "E: Failed to fetch"; exit 100; }}
    cp {root}/debs/* {root}/store/cache/packages/*/archives/ ;;
*update) test -e {root}/no-update && {{ echo "E: offline"; exit 100; }}
    : > {root}/store/cache/packages/arm64/lists/x_Packages ;;
esac
"""


def deb(**files: str) -> bytes:
    """A package (deb(5)) with files by path, where `__` stands for a slash."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo("./" + name.replace("__", "/"))
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    members = (
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", b"odd"),
        ("data.tar.xz", lzma.compress(data.getvalue())),
    )
    made = b"!<arch>\n"
    for name, content in members:
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        made += head.encode() + content + b"\n" * (len(content) % 2)
    return made


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package_files.cache_clear()
    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "apt-get").write_text(APT.format(root=tmp_path))
    (tools / "dpkg").write_text("#!/bin/sh\necho amd64\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    (tmp_path / "debs").mkdir()
    (tmp_path / "debs/libx_2%3a1.0-1_amd64.deb").write_bytes(deb(usr__lib__libx="x"))
    (tmp_path / "debs/tool_3_all.deb").write_bytes(
        deb(usr__bin__tool="t", usr__share__doc__tool="manual", usr__share__tool="data")
    )
    return tmp_path


def test_packages_come_with_what_they_depend_on_and_without_manuals(room: Path) -> None:
    files, packages = package_files(("tool",), (), "x86-64")
    given = {path: laid.content() for path, laid in files.items() if laid.link is None}
    assert given == {
        "usr/lib/libx": b"x",
        "usr/bin/tool": b"t",
        "usr/share/tool": b"data",
    }
    assert {name: package.version for name, package in packages.items()} == {
        "libx": "2:1.0-1",
        "tool": "3",
    }
    archive = (room / "debs/tool_3_all.deb").read_bytes()
    assert packages["tool"].digest == sha256(archive).hexdigest()
    tools = [laid.source for path, laid in files.items() if path.endswith("tool")]
    assert {each.archive for each in tools if isinstance(each, Member)} == {
        packages["tool"].contents
    }
    package_files.cache_clear()
    (room / "offline").touch()
    assert package_files(("tool",), (), "x86-64")[0] == files


def test_directories_that_moved_below_usr_are_where_programs_look_for_them(room: Path) -> None:
    laid = {"usr__lib64__ld-linux": "l", "sbin__tool": "t", "usr__sbin__other": "o"}
    (room / "debs/tool_3_all.deb").write_bytes(deb(**laid))
    (room / "debs/libx_2%3a1.0-1_amd64.deb").write_bytes(deb(usr__lib__libx="x"))
    files, _ = package_files(("tool",), (), "x86-64")
    links = {path: laid.link for path, laid in files.items() if laid.link is not None}
    assert links == {"lib": "usr/lib", "lib64": "usr/lib64"}


def test_what_is_left_out_counts_as_installed_unless_it_is_named(room: Path) -> None:
    package_files(("tool", "ucf"), ("libllvm",), "x86-64")
    status = (room / "store/cache/packages/amd64/status").read_text()
    present = [line.split()[1] for line in status.splitlines() if line.startswith("Package:")]
    assert {"libllvm", "debconf"} <= set(present)
    assert "ucf" not in present


@pytest.mark.parametrize(
    ("name", "remedy"), [("libxx", "did you mean `libx`?"), ("nosuch", "remove it there")]
)
def test_only_dependencies_can_be_left_out(room: Path, name: str, remedy: str) -> None:
    with pytest.raises(InputError, match=f"`leave_out` names {name}, which none of") as raised:
        package_files(("tool",), ("debconf", name), "x86-64")
    assert raised.value.remedy == remedy
    # What is left out may be what cannot be installed.
    with pytest.raises(InputError, match="apt-get: unmet"):
        package_files(("unmet",), ("libx",), "x86-64")


def test_what_can_be_left_out_is_asked_once(room: Path) -> None:
    package_files(("tool",), ("libx",), "x86-64")
    first = (room / "asked").read_text().count("--simulate")
    package_files.cache_clear()
    package_files(("tool",), ("libx",), "x86-64")
    assert ((room / "asked").read_text().count("--simulate") - first, first) == (1, 2)


def test_another_architecture_has_lists_of_its_own(room: Path) -> None:
    package_files(("tool",), (), "arm64")
    asked = (room / "asked").read_text().splitlines()
    assert asked[0].endswith(" update")
    assert all("APT::Architecture=arm64" in line and "Dir::State::lists=" in line for line in asked)


def test_lists_of_another_architecture_are_as_new_as_those_of_this_machine(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def updates() -> int:
        package_files.cache_clear()
        package_files(("tool",), (), "arm64")
        return (room / "asked").read_text().count(" update\n")

    monkeypatch.setattr(debian, "HOST_LISTS", room / "partial")
    assert [updates(), updates()] == [1, 1]
    (room / "partial").mkdir()
    os.utime(room / "partial", (time.time() + 10,) * 2)
    (room / "no-update").touch()
    assert updates() == 2, "old lists are better than none"
    (room / "no-update").unlink()
    os.utime(room / "partial", (time.time() - 1,) * 2)
    os.utime(room / "store/cache/packages/arm64/updated", (0, 0))
    assert [updates(), updates()] == [3, 3]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "apt-get: Unable to locate package nothing"),
        ("foes", "apt-get: foes : Conflicts: tool"),
        ("unmet", "apt-get: unmet : Depends: libx .* is not installable"),
    ],
)
def test_packages_that_cannot_be_found_are_one_line(room: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        package_files((name,), (), "x86-64")


def test_a_failed_download_has_a_remedy(room: Path) -> None:
    (room / "offline").touch()
    with pytest.raises(EnvironmentLack, match="Failed to fetch") as raised:
        package_files(("tool",), (), "x86-64")
    assert raised.value.remedy == "apt-get update"


def test_a_damaged_package_is_named(room: Path) -> None:
    (room / "debs/tool_3_all.deb").write_bytes(b"!<arch>\nodd")
    with pytest.raises(WorkError, match=r"the package tool_3_all\.deb is damaged"):
        package_files(("tool",), (), "x86-64")
