"""Where a phone is, and how it is got elsewhere, by a clock of the test's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import cast

import pytest
from writers.played_bench import MODEL, Bench

from mepof.device import handset as module
from mepof.device.adb import AdbShell, NoRoot
from mepof.device.attached import Attached
from mepof.device.fastboot import Fastboot
from mepof.device.handset import FellBack, Handset, Lost
from mepof.device.shell import Ran


class Up:
    """The shell of a system that is up."""

    def run(self, argv: tuple[str, ...], timeout: float) -> Ran:
        return Ran(0, "1\n" if argv[0] == "getprop" else "")

    def read(self, path: str) -> str:
        return "quiet\n"


@dataclass
class Clock:
    now: float = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Waited:
    """A phone whose answers a test gives, one for each look at it."""

    patch: pytest.MonkeyPatch
    directory: Path
    clock: Clock = field(default_factory=Clock)
    trouble: tuple[str, str] | None = None

    def phone(
        self, shells: Iterator[object], in_fastboot: Iterator[bool], seconds: float = 60
    ) -> Handset:
        def shell(handset: Handset) -> object:
            if isinstance(found := next(shells), Exception):
                raise found
            return found

        self.patch.setattr(Handset, "shell", shell)
        self.patch.setattr(Fastboot, "present", lambda fastboot: next(in_fastboot))
        self.patch.setattr(Fastboot, "trouble", lambda fastboot: None)
        self.patch.setattr(AdbShell, "trouble", lambda shell: self.trouble)
        phone = Attached(name="p", fastboot="X", model="m")
        return Handset(
            phone,
            MODEL.model_copy(update={"boot_seconds": seconds}),
            self.directory,
            lambda text: None,
            now=lambda: self.clock.now,
            pause=self.clock.pause,
        )


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Waited:
    return Waited(monkeypatch, tmp_path)


def test_a_phone_may_be_slow_to_leave_its_boot_loader(waited: Waited) -> None:
    up = Up()
    looks = chain([None] * 9, [up])
    phone = waited.phone(looks, chain([True] * 8, [False]))
    assert cast(object, phone.wait_for_system(None)) is up


def test_a_phone_that_stays_in_its_boot_loader_fell_back(waited: Waited) -> None:
    with pytest.raises(FellBack, match="fell back to its boot loader"):
        waited.phone(repeat(None), repeat(True)).wait_for_system(None)
    assert 10 <= waited.clock.now <= 11


def test_a_phone_that_returns_to_its_boot_loader_fell_back(waited: Waited) -> None:
    with pytest.raises(FellBack):
        waited.phone(repeat(None), chain([True, False], repeat(True))).wait_for_system(None)
    assert waited.clock.now < 3


def test_a_phone_that_is_given_little_time_fell_back_too(waited: Waited) -> None:
    with pytest.raises(FellBack, match="did not leave its boot loader"):
        waited.phone(repeat(None), repeat(True), 5).wait_for_system(None)


def test_a_phone_that_answers_nowhere_is_lost(waited: Waited) -> None:
    with pytest.raises(Lost, match="was not up within 60 s"):
        waited.phone(repeat(None), repeat(False)).wait_for_system(None)


def test_a_phone_that_adb_may_not_use_says_so(waited: Waited) -> None:
    waited.trouble = "it does not let this machine use adb", "unlock its screen"
    phone = waited.phone(repeat(None), repeat(False))
    why = "the phone p was not up within 60 s: it does not let this machine use adb"
    with pytest.raises(Lost, match=why) as caught:
        phone.wait_for_system(None)
    assert caught.value.remedy == "unlock its screen, and run again"


def test_a_phone_whose_usb_port_is_not_the_user_s_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "fastboot"
    listed = "no permissions (missing udev rules? user is in the plugdev group)\tfastboot"
    program.write_text(f"#!/bin/sh\necho '{listed}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    trouble = Fastboot("0123ABCD").trouble()
    assert trouble is not None and "USB port" in trouble[0]
    assert Fastboot("tcp:127.0.0.1:5554").trouble() is None


def test_root_may_come_later_than_adb(waited: Waited) -> None:
    up = Up()
    phone = waited.phone(chain([NoRoot("no root")] * 9, [up]), repeat(False))
    assert cast(object, phone.wait_for_system(None)) is up


def test_a_system_that_never_gives_root_is_said_at_the_end(waited: Waited) -> None:
    with pytest.raises(NoRoot):
        waited.phone(repeat(NoRoot("no root")), repeat(False)).wait_for_system(None)
    assert waited.clock.now >= 60


def test_a_kernel_that_went_down_is_reported_with_its_console(waited: Waited) -> None:
    class Panicked(Up):
        def read(self, path: str) -> str:
            return "Kernel panic\n" if "pstore" in path else "another-boot\n"

    phone = waited.phone(repeat(None), repeat(False))
    with pytest.raises(FellBack, match=r"phone p went down\n  \| Kernel panic$"):
        phone.check_same_boot(cast(AdbShell, Panicked()), "boot")


@pytest.mark.parametrize("state", ["recovery", "rescue", "sideload"])
def test_a_phone_is_brought_back_from_its_other_systems(waited: Waited, state: str) -> None:
    restarted: list[tuple[str, str]] = []
    waited.patch.setattr(AdbShell, "state", lambda self: state)
    waited.patch.setattr(Fastboot, "variable", lambda self, name: None)
    waited.patch.setattr(module, "restart", lambda serial, to: restarted.append((serial, to)))
    waited.phone(repeat(None), chain([False], repeat(True))).to_fastboot()
    assert restarted == [("X", "bootloader")]


@pytest.mark.skipif(shutil.which("fastboot") is None, reason="fastboot is not installed")
def test_a_phone_is_brought_back_from_fastbootd(bench: Bench) -> None:
    bench.on()
    fastboot = bench.handset.to_fastboot()
    fastboot.reboot("fastboot")
    assert fastboot.variable("is-userspace") == "yes"
    assert bench.handset.to_fastboot().variable("is-userspace") == "no"
