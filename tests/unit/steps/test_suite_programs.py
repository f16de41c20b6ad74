"""The step ``suite-programs``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mepof.app.laid import Laid
from mepof.app.packaged import BUSYBOX
from mepof.errors import InputError
from mepof.kernel.overlay import native_directory
from mepof.plan.model import Step
from mepof.steps import suite_programs
from mepof.steps.guest import BODY as GUEST
from mepof.steps.suite_programs import BODY, _packaged_tools
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


def test_a_tree_has_the_same_modes_under_every_umask(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir(mode=0o700)
    for name, mode in (("bin/java", 0o700), ("bin/list", 0o400)):
        (tmp_path / name).touch(mode)
    modes = {path: laid.permissions for path, laid in suite_programs._laid(tmp_path).items()}
    assert modes == {"bin": 0o755, "bin/java": 0o755, "bin/list": 0o644}


def test_a_suite_is_refused_on_an_architecture_without_programs() -> None:
    with pytest.raises(InputError, match="the suite jni has no programs for arm64"):
        BODY.identity(step("jni", "arm64"))


def test_guests_of_another_architecture_get_programs_from_its_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[tuple[Tool, ...], str]] = []

    def packaged(tools: tuple[Tool, ...], arch: str) -> tuple[dict[str, Laid], dict[str, str]]:
        asked.append((tools, arch))
        return {"bin/made": Laid(b"made")}, {"package made": "1 (SHA-256 2f)"}

    monkeypatch.setattr(suite_programs, "packaged", packaged)
    identity = BODY.identity(step("unixbench", "arm64"))
    assert identity["package made"] == "1 (SHA-256 2f)"
    assert not [name for name in identity if "bin/made" in name]
    tool = Tool(path="/usr/bin/fio", package="fio")
    suites = {"scripts": Programs(shell=True), "tools": Programs(tool=(tool,))}
    assert asked.pop() == ((BUSYBOX,), "arm64")
    assert [
        _packaged_tools(suite, arch) for suite in suites.values() for arch in ("arm64", "x86-64")
    ] == [(BUSYBOX,), (), (tool,), ()]


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
