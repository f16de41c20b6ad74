"""The step ``suite-programs``."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from mepof.app.laid import Laid
from mepof.errors import InputError
from mepof.kernel.overlay import native_directory
from mepof.plan.model import Step
from mepof.steps import suite_programs
from mepof.steps.guest import BODY as GUEST
from mepof.steps.suite_programs import BODY
from mepof.suite.cases import Programs, Tool

from .room import Room

musl = pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-tools is not installed")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def step(suite: str, arch: str = "x86-64") -> Step:
    return Step("suite", "suite-programs", {"arch": arch, "suite": suite})


@musl
def test_an_archive_contains_the_suites_program_in_its_directory(room: Room) -> None:
    BODY.run(room.context("suite-programs", {"arch": "x86-64", "suite": "compute"}))
    made = (room.root / "suite-programs-output/archive.cpio").read_bytes()
    assert made.startswith(b"070701")
    assert made.index(b"suites\0") < made.index(b"suites/compute\0") < made.index(b"TRAILER!!!")
    assert b"\x7fELF" in made


@pytest.mark.skipif(shutil.which("javac") is None, reason="default-jdk-headless is not installed")
def test_a_jvm_and_its_libraries_are_laid_beside_the_program(room: Room) -> None:
    assert BODY.identity(step("jni"))["javac"].startswith("javac ")
    BODY.run(room.context("suite-programs", {"arch": "x86-64", "suite": "jni"}))
    made = (room.root / "suite-programs-output/archive.cpio").read_bytes()
    for path in (
        "suites/jni",
        "usr/lib/jvm/java/lib/server/libjvm.so",
        "lib64/ld-linux-x86-64.so.2",
    ):
        assert path.encode() + b"\0" in made
    assert b"/libstdc++.so.6\0" in made
    assert b"suite-programs-work" not in made.partition(b"TRAILER!!!")[0]


def test_a_suite_is_refused_on_an_architecture_without_programs() -> None:
    with pytest.raises(InputError, match="the suite jni has no programs for arm64"):
        BODY.identity(step("jni", "arm64"))


@pytest.mark.parametrize("top", ["", "usr/"])
def test_guests_of_another_architecture_get_what_scripts_need_from_its_packages(
    monkeypatch: pytest.MonkeyPatch, top: str
) -> None:
    asked: list[tuple[object, ...]] = []
    path = f"{top}bin/busybox"
    link = {"bin": Laid(link="usr/bin")} if top else {}

    def package_files(names: tuple[str, ...], left_out: tuple[str, ...], arch: str) -> object:
        asked.append((names, left_out, arch))
        return {**link, path: Laid(program(183), executable=True)}, {}

    monkeypatch.setattr(suite_programs, "package_files", package_files)
    scripts = Programs(native="unixbench", shell=True)
    assert list(suite_programs._packaged(scripts, "arm64")) == ["bin/busybox"]
    assert asked == [(("busybox-static",), (), "arm64")]
    assert not suite_programs._packaged(scripts, "x86-64")  # in every guest
    assert not suite_programs._packaged(Programs(native="threads"), "arm64")


def test_a_package_without_the_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Programs(tool=(Tool(path="/usr/bin/fio", package="fio"),))
    monkeypatch.setattr(suite_programs, "package_files", lambda *_: ({}, {}))
    with pytest.raises(InputError, match="the package fio for arm64 does not have /usr/bin/fio"):
        suite_programs._packaged(tools, "arm64")
    assert not suite_programs._packaged(tools, "x86-64")  # this machine's own


def program(machine: int) -> bytes:
    """The ELF header (System V ABI) of a static program, by its `e_machine`."""
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    return identity + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)


@musl
def test_a_suites_sources_are_part_of_its_identity_and_not_of_the_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = tmp_path / "native"
    shutil.copytree(native_directory(), native)
    for module in ("suite_programs", "guest"):
        monkeypatch.setattr(f"mepof.steps.{module}.native_directory", lambda: native)
    clear_caches()
    guest = Step("guest", "guest", {"arch": "x86-64"})
    before = [BODY.identity(step(name)) for name in ("compute", "threads")]
    guest_before = GUEST.identity(guest)
    with (native / "suites/compute/compute.c").open("a") as file:
        file.write("/* changed */\n")
    clear_caches()
    assert BODY.identity(step("compute")) != before[0]
    assert BODY.identity(step("threads")) == before[1]
    with (native / "suites/case.c").open("a") as file:
        file.write("/* changed */\n")
    clear_caches()
    assert BODY.identity(step("threads")) != before[1]
    assert GUEST.identity(guest) == guest_before
    monkeypatch.undo()
    clear_caches()


def clear_caches() -> None:
    suite_programs._sources_digest.cache_clear()
    from mepof.steps import guest

    guest._sources_digest.cache_clear()
