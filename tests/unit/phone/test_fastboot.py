"""The virtual phone and the real ``fastboot``, which ``make test`` installs."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from writers.boot_image import boot_image, hash_descriptor, vbmeta, with_footer

from mepof.phone.bootloader import Bootloader
from mepof.phone.faults import Faults, read_fault
from mepof.phone.server import listening, serve_tcp, serve_udp
from mepof.phone.state import DEFAULT_MODEL, Storage

FASTBOOT = shutil.which("fastboot")
pytestmark = pytest.mark.skipif(
    FASTBOOT is None, reason="fastboot is not installed: MEPOF_SETUP_TESTS=1 tools/setup"
)


@dataclass
class Phone:
    """A phone that listens, and what its screen showed."""

    directory: Path
    transport: str = "tcp"
    fault: str | None = None
    screen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        storage = Storage(self.directory, DEFAULT_MODEL)
        faults = Faults((read_fault(self.fault),) if self.fault else ())
        self.bootloader = Bootloader(storage, DEFAULT_MODEL, self.screen.append, faults)
        udp = self.transport == "udp"
        self.socket = listening(socket.SOCK_DGRAM if udp else socket.SOCK_STREAM, 0)
        serve = serve_udp if udp else serve_tcp
        threading.Thread(target=serve, args=(self.socket, self.bootloader), daemon=True).start()

    def fastboot(self, *words: str | Path) -> tuple[int, str]:
        """The status of ``fastboot``, and what it said."""
        address = f"{self.transport}:127.0.0.1:{self.socket.getsockname()[1]}"
        argv = [str(FASTBOOT), "-s", address, *map(str, words)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def accepts(self, *words: str | Path) -> str:
        status, said = self.fastboot(*words)
        assert status == 0, said
        return said

    def refuses(self, *words: str | Path) -> str:
        status, said = self.fastboot(*words)
        assert status != 0, said
        return said


@pytest.fixture(params=["tcp", "udp"])
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    """A new phone, over each transport."""
    (tmp_path / "phone").mkdir()
    made = Phone(tmp_path / "phone", request.param)
    yield made
    made.socket.close()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A boot image that the phone can load."""
    path = tmp_path / "boot.img"
    path.write_bytes(boot_image())
    return path


def test_a_new_phone_is_locked(phone: Phone, image: Path) -> None:
    assert "unlocked: no" in phone.accepts("getvar", "unlocked")
    assert "Flashing is not allowed in Lock State" in phone.refuses("flash", "boot", image)
    assert "not available in locked device" in phone.refuses("boot", image)
    assert "Slot Change is not allowed" in phone.refuses("set_active", "b")
    assert "Erase is not allowed in Lock State" in phone.refuses("erase", "misc")


def test_an_unlocked_phone_boots_from_memory_and_flashes(phone: Phone, image: Path) -> None:
    phone.accepts("flashing", "unlock")
    phone.accepts("boot", image)
    assert phone.screen[-1] == "started ram"
    assert not (phone.directory / "boot_a.img").exists()
    phone.accepts("flash", "boot", image)
    assert (phone.directory / "boot_a.img").read_bytes() == image.read_bytes()
    phone.accepts("reboot")
    assert phone.screen[-1] == "started boot_a"
    assert "slot-retry-count:a: 6" in phone.accepts("getvar", "slot-retry-count:a")


def test_the_other_slot_is_flashed_and_made_active(phone: Phone, image: Path) -> None:
    phone.accepts("oem", "unlock")
    phone.accepts("flash", "boot_b", image)
    phone.accepts("set_active", "b")
    assert "current-slot: b" in phone.accepts("getvar", "current-slot")
    phone.accepts("reboot")
    assert phone.screen[-1] == "started boot_b"
    phone.bootloader.mark_successful()
    assert "slot-successful:b: yes" in phone.accepts("getvar", "slot-successful:b")


def test_every_variable_is_listed(phone: Phone) -> None:
    said = phone.accepts("getvar", "all")
    for name, value in phone.bootloader.variables().items():
        assert f"(bootloader) {name}:{value}" in said


def test_a_slot_that_does_not_boot_gives_way_to_the_other(phone: Phone, image: Path) -> None:
    phone.accepts("flashing", "unlock")
    phone.accepts("flash", "boot_a", image)
    phone.accepts("set_active", "a")
    bad = image.with_name("bad.img")
    bad.write_bytes(boot_image(ramdisk_address=0x40100000))
    phone.accepts("flash", "boot_b", bad)
    phone.accepts("set_active", "b")
    phone.accepts("reboot")
    assert phone.screen[-1] == "started boot_a"
    assert phone.screen.count("boot_b: Load Error") == 7
    assert "slot-unbootable:b: yes" in phone.accepts("getvar", "slot-unbootable:b")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (boot_image(ramdisk_address=0x40100000), "Load Error"),
        (boot_image(kernel_address=0x7F000000), "Load Error"),
        (boot_image()[:3000], "Invalid Parameter"),
    ],
)
def test_an_image_that_cannot_be_loaded_is_refused(
    tmp_path: Path, data: bytes, status: str
) -> None:
    phone = Phone(tmp_path)
    (tmp_path / "bad.img").write_bytes(data)
    phone.accepts("flashing", "unlock")
    said = phone.refuses("boot", tmp_path / "bad.img")
    assert f"Failed to load/authenticate boot image: {status}" in said
    phone.socket.close()


def test_what_does_not_exist_or_fit_is_refused(phone: Phone, tmp_path: Path) -> None:
    phone.accepts("flashing", "unlock")
    large = tmp_path / "large"
    large.write_bytes(bytes(100_000))
    assert "(nothing) No such partition" in phone.refuses("flash", "nothing", large)
    assert "Volume Full" in phone.refuses("flash", "vbmeta_a", large)
    assert "unknown command" in phone.refuses("oem", "dance")
    assert "Device already : unlocked!" in phone.refuses("flashing", "unlock")


def test_a_locked_phone_starts_verified_images_alone(tmp_path: Path) -> None:
    phone = Phone(tmp_path)
    content = boot_image()
    signed = with_footer(content, vbmeta(hash_descriptor("boot", content), algorithm=1), 1 << 20)
    (tmp_path / "boot_a.img").write_bytes(signed)
    phone.accepts("reboot")
    assert phone.screen[-1] == "started boot_a"
    (tmp_path / "boot_a.img").write_bytes(b"".join([signed[:5000], b"x", signed[5001:]]))
    phone.accepts("reboot")
    assert "boot_a: Security Violation" in phone.screen
    phone.socket.close()


def test_a_locked_phone_refuses_a_damaged_vbmeta(tmp_path: Path) -> None:
    phone = Phone(tmp_path)
    (tmp_path / "boot_a.img").write_bytes(with_footer(boot_image(), bytes(512), 1 << 20))
    phone.accepts("reboot")
    assert "boot_a: Invalid Parameter" in phone.screen
    assert "unlocked: no" in phone.accepts("getvar", "unlocked")
    phone.socket.close()


def test_a_low_battery_forbids_flashing(tmp_path: Path, image: Path) -> None:
    phone = Phone(tmp_path, fault="low-battery")
    phone.accepts("flashing", "unlock")
    assert "battery-soc-ok: no" in phone.accepts("getvar", "battery-soc-ok")
    assert "battery's capacity is very low" in phone.refuses("flash", "boot", image)
    phone.socket.close()


def test_a_phone_that_may_not_be_unlocked_says_so(tmp_path: Path) -> None:
    phone = Phone(tmp_path, fault="not-unlockable")
    assert "get_unlock_ability: 0" in phone.accepts("flashing", "get_unlock_ability")
    assert "Flashing Unlock is not allowed" in phone.refuses("flashing", "unlock")
    phone.socket.close()


def test_a_lost_cable_leaves_a_phone_that_answers_again(tmp_path: Path, image: Path) -> None:
    phone = Phone(tmp_path, fault="lost-in-flash")
    phone.accepts("flashing", "unlock")
    phone.refuses("flash", "boot", image)
    half = image.read_bytes()[: image.stat().st_size // 2]
    assert (tmp_path / "boot_a.img").read_bytes() == half
    phone.socket.close()
    again = Phone(tmp_path)
    again.accepts("flash", "boot", image)
    again.accepts("reboot")
    assert again.screen[-1] == "started boot_a"
    again.socket.close()


def test_a_boot_loop_ends_in_fastboot(tmp_path: Path, image: Path) -> None:
    phone = Phone(tmp_path, fault="boot-loop")
    phone.accepts("flashing", "unlock")
    phone.accepts("flash", "boot", image)
    phone.accepts("reboot")
    assert phone.screen.count("boot_a: the kernel resets the phone") == 7
    assert "slot-unbootable:a: yes" in phone.accepts("getvar", "slot-unbootable:a")
    phone.socket.close()


def test_a_phone_keeps_its_state(tmp_path: Path, image: Path) -> None:
    phone = Phone(tmp_path)
    phone.accepts("flashing", "unlock")
    phone.accepts("set_active", "b")
    phone.socket.close()
    assert Phone(tmp_path).bootloader.state == phone.bootloader.state


def test_the_boot_loader_hands_over_to_fastbootd_and_back(phone: Phone, tmp_path: Path) -> None:
    system = tmp_path / "system.img"
    system.write_bytes(b"system" * 1000)
    phone.accepts("flashing", "unlock")
    assert "No such partition" in phone.refuses("flash", "system_a", system)
    assert "is-userspace: no" in phone.accepts("getvar", "is-userspace")
    # The client fails unless it finds fastbootd afterwards.
    phone.accepts("reboot", "fastboot")
    assert "super-partition-name: super" in phone.accepts("getvar", "super-partition-name")
    phone.accepts("create-logical-partition", "system_a", "100")
    # The client resizes what is logical to what it flashes.
    assert "Resizing 'system_a'" in phone.accepts("flash", "system_a", system)
    assert (phone.directory / "system_a.img").read_bytes() == system.read_bytes()
    assert "partition-size:system_a: 0x1770" in phone.accepts("getvar", "partition-size:system_a")
    assert "Not enough space" in phone.refuses("resize-logical-partition", "system_a", "999999999")
    assert "already exists" in phone.refuses("create-logical-partition", "boot_a", "1")
    assert "Unrecognized command" in phone.refuses("flashing", "lock")
    phone.accepts("erase", "system_a")
    phone.accepts("delete-logical-partition", "system_a")
    assert "does not exist" in phone.refuses("delete-logical-partition", "system_a")
    phone.accepts("reboot", "bootloader")
    assert "is-userspace: no" in phone.accepts("getvar", "is-userspace")
    assert "unknown command" in phone.refuses("create-logical-partition", "system_a", "100")


def test_fastbootd_of_a_locked_phone_changes_nothing(phone: Phone, image: Path) -> None:
    phone.accepts("reboot", "fastboot")
    refused: dict[tuple[str | Path, ...], str] = {
        ("create-logical-partition", "system_a", "1"): "Command not available on locked devices",
        ("flash", "boot", image): "Flashing is not allowed on locked devices",
        ("erase", "boot"): "Erase is not allowed on locked devices",
        ("set_active", "b"): "set_active command is not allowed on locked devices",
    }
    for command, said in refused.items():
        assert said in phone.refuses(*command)


def test_fastbootd_flashes_boot_partitions_too(phone: Phone, image: Path) -> None:
    phone.accepts("flashing", "unlock")
    phone.accepts("reboot", "fastboot")
    phone.accepts("flash", "boot_b", image)
    phone.accepts("set_active", "b")
    phone.accepts("reboot")
    assert phone.bootloader.state.slot == "b"
    assert "started boot_b" in phone.screen


@pytest.mark.parametrize("command", [b"\xff\xfe", b"download:zz", b"download:ffffffff", b""])
def test_a_command_that_makes_no_sense_is_refused(tmp_path: Path, command: bytes) -> None:
    storage = Storage(tmp_path, DEFAULT_MODEL)
    bootloader = Bootloader(storage, DEFAULT_MODEL, lambda line: None)
    (answer,) = bootloader.command(command)
    assert answer.startswith(b"FAIL")
    assert bootloader.expected == 0
