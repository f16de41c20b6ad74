"""Programs of Debian's packages for guests of another architecture."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.app import packaged as module
from mepof.app.debian import Package
from mepof.app.laid import Laid, Member
from mepof.app.packaged import BUSYBOX, packaged
from mepof.errors import InputError
from mepof.suite.cases import Tool


def program(path: Path) -> Laid:
    """The ELF header (System V ABI) of a static arm64 program, in the archive of a package."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    data = identity + struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
    path.write_bytes(data)
    return Laid(Member(path, 0, len(data)), executable=True)


def serve(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, Laid], *packages: Package) -> None:
    found = {f"package{number}": package for number, package in enumerate(packages)}
    monkeypatch.setattr(module, "package_files", lambda *asked: (files, found))


@pytest.mark.parametrize("top", ["", "usr/"])
def test_a_program_is_laid_where_it_is_looked_up_and_its_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, top: str
) -> None:
    archive = tmp_path / "data.tar"
    link = {"bin": Laid(link="usr/bin")} if top else {}
    serve(
        monkeypatch,
        {**link, f"{top}bin/busybox": program(archive), "etc/other": Laid(b"")},
        Package("1:1.35.0-4", "2f", archive),
        Package("3", "41", tmp_path / "other.tar"),
    )
    files, packages = packaged((BUSYBOX,), "arm64")
    assert list(files) == ["bin/busybox"]
    assert packages == {"package package0": "1:1.35.0-4 (SHA-256 2f)"}


def test_a_package_without_the_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {})
    with pytest.raises(InputError, match="the package fio for arm64 does not have /usr/bin/fio"):
        packaged((Tool(path="/usr/bin/fio", package="fio"),), "arm64")
    assert packaged((), "arm64") == ({}, {})
