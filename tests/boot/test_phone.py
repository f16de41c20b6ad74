"""A virtual phone boots the quickstart's kernel, and the real adb talks to the real adbd in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from writers.virtual_phone import MAIN, UP_SECONDS, VirtualPhone, listed, virtual_phone

from mepof.device.protocol import INITRAMFS
from mepof.executor.protocol import Finished

pytestmark = [
    pytest.mark.boot,
    pytest.mark.adbd,
    pytest.mark.skipif(
        not all(map(shutil.which, ("adb", "fastboot"))), reason="adb or fastboot is not installed"
    ),
]


@pytest.fixture
def phone(tmp_path: Path) -> Iterator[VirtualPhone]:
    with virtual_phone(tmp_path / "phone") as made:
        yield made


def test_phone_boots_from_memory_and_from_the_other_slot_when_one_panics(
    phone: VirtualPhone, finished: Finished
) -> None:
    kernel = finished.run.steps["plain/build"].path / "kernel"
    phone.on("--kernel", kernel, "--header", "4")
    phone.fastboot("flashing", "unlock")
    # From memory; the system sees its slots, and reboots into fastboot.
    phone.fastboot("boot", phone.directory / "boot_b.img")
    phone.wait_for_adb()
    assert phone.shell("getprop ro.boot.slot_suffix").strip() == "_a"
    flashed = (phone.directory / "boot_b.img").read_bytes()
    size = phone.shell("wc -c < /dev/block/by-name/boot_b")
    assert int(size) == len(flashed)
    phone.shell("/system/bin/reboot bootloader")
    phone.off()
    # A new slot whose kernel panics is given up, and the other one is up again.
    phone.on("--fault", "kernel-panic@b")
    phone.fastboot("set_active", "b")
    phone.fastboot("reboot")
    until = time.monotonic() + 7 * UP_SECONDS
    while "slot b is unbootable" not in phone.screen() and time.monotonic() < until:
        time.sleep(1)
    phone.wait_for_adb()
    assert phone.shell("getprop ro.boot.slot_suffix").strip() == "_a"
    assert phone.screen().count("the system ended: crash") == 7
    phone.shell("/system/bin/reboot bootloader")
    time.sleep(3)
    assert "slot-unbootable:b: yes" in phone.fastboot("getvar", "slot-unbootable:b")


DRIVE = """
import sys
from mepof.app.android import AndroidApp
from mepof.device.adb import AdbShell
from mepof.scenario.driving import Budget, Drive
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.system import System

names = ("mail", "gallery")
apps = [AndroidApp(package=f"org.mepof.{n}", activity=".Main", throttle=0) for n in names]
system = System(AdbShell.attach(sys.argv[1], "adbd"))
for name in ("rand", "trav", "learned"):
    budgets = tuple(Budget(app, 600, 12) for app in apps)
    asked = Drive(system, budgets, 1, None, print, lambda count, what: None)
    done = SCENARIOS.get(name).drive(asked)
    assert [app.actions for app in done.apps] == [12, 12], done
    assert name == "rand" or min(app.states for app in done.apps) > 3, done
print("driven")
"""


def test_apps_are_driven_over_adb(phone: VirtualPhone, finished: Finished) -> None:
    phone.on("--kernel", finished.run.steps["plain/build"].path / "kernel")
    phone.fastboot("flashing", "unlock")
    phone.fastboot("boot", phone.directory / "boot_a.img")
    phone.wait_for_adb()
    driven = subprocess.run(
        [sys.executable, "-c", DRIVE, f"127.0.0.1:{phone.adb_port}"],
        env=phone.environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert driven.stdout.endswith("driven\n"), driven.stdout + driven.stderr + phone.screen()


TRAIN = """
import sys
from pathlib import Path
from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.android import AndroidApps
from mepof.device import agent
from mepof.device.protocol import DEVICES, Interlude, Session
from mepof.process import run
from mepof.scenario.driver import Driver
from mepof.scenario.protocol import SCENARIOS
from mepof.suite.cases import selfcheck

kernel, initramfs, work = map(Path, sys.argv[1:])
pgo = ALGORITHMS.get("pgo")
check = agent.Exec(selfcheck(), 120)
requests = (*pgo.reset(), check, *pgo.collect(False))
mail = {"package": "org.mepof.mail", "actions": 12, "seconds": 600, "throttle": 50}
apps = AndroidApps.model_validate({"name": "mail", "title": "mail", "android": [mail]})
trav = SCENARIOS.get("trav")
driver = Driver(trav, [apps], 1, None, [1.0], print, lambda count, what: None)
session = Session(
    "x86-64", kernel, initramfs, requests, 1, interlude=Interlude(len(pgo.reset()), driver.drive)
)
outcome = DEVICES.get("phone").boot(session, work, run, lambda count: None)
agent.expect_success(check, outcome.replies[1])
assert len(outcome.replies[2].data) > 1_000_000
[driven] = driver.screens.apps
assert (driven.actions, driven.ended) == (12, "actions") and driven.states > 3, driven
print("trained on", outcome.release)
"""


def test_a_kernel_is_trained_and_flashed_and_starts(
    phone: VirtualPhone, finished: Finished, tmp_path: Path
) -> None:
    steps = finished.run.steps
    phone.on("--kernel", steps["plain/build"].path / "kernel")
    phone.fastboot("flashing", "unlock")
    environment = listed(tmp_path, phone)
    # The instrumented kernel is larger: mepof moves the ramdisk out of its way.
    files = [steps["opt/instrument"].path / "kernel", steps["guest"].path / INITRAMFS]
    trained = subprocess.run(
        [sys.executable, "-c", TRAIN, *files, tmp_path / "work"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert "trained on 6.12" in trained.stdout, trained.stderr + phone.screen()
    program = tmp_path / "flash.g4"
    image = steps["opt/build"].path / "kernel"
    program.write_text(f"set device phone. set seed 1. flash {image}.")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "run", program, "--flash", "--out", tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr + phone.screen()
    flashed = json.loads((tmp_path / "out/flash.json").read_text())
    assert (flashed["partition"], flashed["marked"]) == ("boot_b", "mepof")
    assert "slot b is successful" in phone.screen()
    phone.wait_for_adb()
    assert phone.shell("getprop ro.boot.slot_suffix").strip() == "_b"
