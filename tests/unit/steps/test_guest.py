"""The step ``guest``, with scripted compilers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import EnvironmentLack, InputError
from mepof.plan.body import StepContext
from mepof.plan.model import Step
from mepof.steps import guest
from mepof.toolchain import guest as target

CROSS = "aarch64-linux-gnu-gcc"
# Makes the files of our Makefile; the agent records the arguments.
MAKE = """
for word; do case $word in OUT=*) out=${word#OUT=} ;; esac; done
for name in agent kbench; do printf '%s' "$*" > "$out/$name"; done
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The first directory on PATH, with a gcc."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program(directory, "gcc", "echo gcc 12")
    program(directory, "make", MAKE)
    monkeypatch.setenv("PATH", str(directory))
    target.identity.cache_clear()
    yield directory
    target.identity.cache_clear()


def program(directory: Path, name: str, body: str) -> None:
    """A shell script."""
    file = directory / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def cross_compiler(directory: Path, library: str) -> None:
    """The cross compiler for arm64, with the path of its C library."""
    program(
        directory,
        CROSS,
        f"case $1 in --version) echo cross 12 ;; -print-file-name=*) echo {library} ;; esac",
    )


def step(arch: str) -> Step:
    return Step("guest", "guest", {"arch": arch})


def test_an_architecture_without_guest_programs_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = arch.get("arm").model_copy(update={"guests": arch.Guests()})
    monkeypatch.setattr(arch, "get", lambda name: bare)
    with pytest.raises(InputError, match="no guest programs for arm yet"):
        guest.BODY.identity(step("arm"))


def test_the_error_for_a_missing_cross_compiler_names_both_packages(path: Path) -> None:
    with pytest.raises(EnvironmentLack, match=f"{CROSS} is not installed") as caught:
        guest.BODY.identity(step("arm64"))
    assert caught.value.remedy == "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"


def test_a_cross_compiler_without_its_c_library_is_reported(path: Path) -> None:
    cross_compiler(path, "libc.a")  # what it prints for a file that it does not find
    with pytest.raises(EnvironmentLack, match="no static C library") as caught:
        guest.BODY.identity(step("arm64"))
    assert "libc6-dev-arm64-cross" in (caught.value.remedy or "")


def test_compiler_and_c_library_are_part_of_the_guests_identity(path: Path, tmp_path: Path) -> None:
    library = tmp_path / "libc.a"
    library.write_text("one")
    cross_compiler(path, str(library))
    first = guest.BODY.identity(step("arm64"))
    assert first["guest compiler"] == "cross 12"
    library.write_text("two")
    target.identity.cache_clear()
    second = guest.BODY.identity(step("arm64"))
    assert {name for name in first if first[name] != second[name]} == {"guest libc"}


def test_an_arm64_guest_is_cross_built_and_has_no_shell(path: Path, tmp_path: Path) -> None:
    output, work = tmp_path / "output", tmp_path / "work"
    output.mkdir()
    work.mkdir()
    context = StepContext(
        step=step("arm64"),
        inputs={},
        output=output,
        work=work,
        cores=1,
        log=tmp_path / "log",
        cache=tmp_path,
        emit=lambda event: None,
        cancel=threading.Event(),
    )
    guest.BODY.run(context)
    initramfs = (output / "initramfs.cpio").read_bytes()
    assert f"GUEST_CC={CROSS}".encode() in initramfs
    assert b"bin/kbench" in initramfs
    assert b"busybox" not in initramfs
