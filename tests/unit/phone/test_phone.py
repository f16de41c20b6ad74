"""A virtual phone whose processor is played by the test: what is started after what."""

from __future__ import annotations

import errno
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from writers.boot_image import boot_image

from mepof.errors import InputError
from mepof.phone.adb_port import AdbPort
from mepof.phone.bootloader import Bootloader
from mepof.phone.faults import Faults, read_fault
from mepof.phone.loading import Loaded
from mepof.phone.machine import Ended, Qemu
from mepof.phone.phone import Phone
from mepof.phone.server import close, held, listening
from mepof.phone.state import DEFAULT_MODEL, Storage

FASTBOOT = shutil.which("fastboot")


@dataclass(frozen=True)
class Played(Qemu):
    """A processor that goes down in the given ways, one after the other."""

    ways: list[str] = field(default_factory=list)
    seen: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def run(
        self,
        loaded: Loaded,
        parameters: Sequence[str],
        partitions: Mapping[str, bytes],
        asked: Callable[[str], None],
        cancel: threading.Event | None = None,
    ) -> Ended:
        self.seen.append((loaded.start, loaded.slot, tuple(parameters)))
        way = self.ways.pop(0)
        if way == "works":
            asked(f"successful {loaded.slot}")
            way = "off"
        return Ended(way)


class Bench:
    """An unlocked phone with a bootable image in both slots."""

    def __init__(self, directory: Path, *faults: str) -> None:
        self.screen: list[str] = []
        storage = Storage(directory, DEFAULT_MODEL)
        for slot in "ab":
            storage.write(f"boot_{slot}", boot_image())
        storage.save(storage.load().model_copy(update={"unlocked": True, "arch": "arm64"}))
        self.machine = Played("arm64", directory, 1, 1 << 30, self.screen.append)
        self.phone = Phone(
            storage,
            DEFAULT_MODEL,
            self.machine,
            0,
            self.screen.append,
            faults=Faults(tuple(map(read_fault, faults))),
        )

    @property
    def loader(self) -> Bootloader:
        return self.phone.bootloader

    def runs(self, command: bytes, *ways: str) -> list[str]:
        """The starts after a command, until one of the ways is the last."""
        self.machine.ways.extend(ways)
        list(self.loader.command(command))
        started = self.loader.started
        while started is not None and started.loaded is not None and self.machine.ways:
            started = self.phone._run(started.loaded)
        return [start for start, _, _ in self.machine.seen]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.phone.off()


def test_a_slot_that_crashes_until_its_retries_are_used_up_gives_way_to_the_other(
    bench: Bench,
) -> None:
    list(bench.loader.command(b"set_active:b"))
    starts = bench.runs(b"reboot", *["crash"] * 7, "works")
    assert starts == ["b"] * 7 + ["a"]
    state = bench.loader.state
    assert (state.slot, state.b.unbootable, state.a.successful) == ("a", True, True)


def test_a_slot_that_is_marked_successful_stays(bench: Bench) -> None:
    list(bench.loader.command(b"set_active:b"))
    assert bench.runs(b"reboot", "crash", "works") == ["b", "b"]
    assert bench.loader.variables()["slot-successful:b"] == "yes"
    assert bench.loader.variables()["slot-retry-count:b"] == "5"


def test_an_image_from_memory_that_crashes_leaves_the_slots_as_they_were(bench: Bench) -> None:
    before = bench.loader.state
    bench.loader.received(boot_image())
    assert bench.runs(b"boot", "crash", "off") == ["ram", "a"]
    assert bench.loader.state.model_copy(update={"boots": 0}) == before


def test_a_system_can_reboot_into_fastboot(bench: Bench) -> None:
    bench.loader.received(boot_image())
    assert bench.runs(b"boot", "bootloader", "off") == ["ram"]
    assert bench.loader.state.a.successful


def test_a_system_is_told_its_slot_and_fault(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "slow-boot@ram")
    bench.loader.received(boot_image())
    bench.runs(b"boot", "crash", "off")
    ((_, _, ram), (_, slot, plain)) = bench.machine.seen
    assert "mepof.fault=slow-boot" in ram
    assert slot == "a"
    assert not any("fault" in word for word in plain)
    assert "androidboot.slot_suffix=_a" in plain
    bench.phone.off()


def test_each_phone_has_a_serial_number_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serials = list[str]()
    for name in ("one", "two", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        bench = Bench(tmp_path / name)
        serials.append(bench.loader.variables()["serialno"])
        bench.runs(b"reboot", "off")
        ((_, _, parameters),) = bench.machine.seen
        assert f"androidboot.serialno={serials[-1]}" in parameters
        bench.phone.off()
    assert serials[0] == serials[2] != serials[1]
    monkeypatch.chdir(tmp_path)
    assert Storage(Path("one"), DEFAULT_MODEL).serial == serials[0], "however it is named"
    assert Storage(tmp_path / "one", DEFAULT_MODEL, "0123ABCD").serial == "0123ABCD"


def test_a_boot_loop_of_what_is_in_memory_ends_in_the_slot(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "boot-loop@ram")
    bench.loader.received(boot_image())
    assert bench.runs(b"boot", "works") == ["a"]
    assert "ram: the kernel resets the phone" in bench.screen
    bench.phone.off()


def test_a_phone_may_start_the_wrong_slot(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "wrong-slot")
    assert list(bench.loader.command(b"set_active:b")) == [b"OKAY"]
    assert bench.runs(b"reboot", "off") == ["a"]
    bench.phone.off()


def test_faults_do_not_outlive_the_process(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "locked", "low-battery")
    assert not bench.loader.state.unlocked
    bench.runs(b"reboot", "off")
    bench.phone.off()
    kept = Storage(tmp_path, DEFAULT_MODEL).load()
    assert kept.unlocked
    assert kept.battery_mv == 4100


def test_a_kernel_for_another_processor_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    loader = Bootloader(
        Storage(tmp_path, DEFAULT_MODEL), DEFAULT_MODEL, bench.screen.append, arch="x86-64"
    )
    loader.received(boot_image())
    (answer,) = loader.command(b"boot")
    assert answer == b"FAILFailed to load/authenticate boot image: Invalid Parameter"
    assert "the kernel is for arm64" in bench.screen
    bench.phone.off()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("boot-lop", "unknown fault"),
        ("boot-loop@c", "cannot happen"),
        ("locked@ram", "cannot happen"),
    ],
)
def test_a_fault_that_does_not_exist_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_fault(text)


@pytest.mark.skipif(FASTBOOT is None, reason="fastboot is not installed")
def test_fastboot_does_not_find_a_phone_that_runs_a_system(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.machine.ways.append("bootloader")
    running = threading.Thread(target=bench.phone.on, daemon=True)
    running.start()
    command = [str(FASTBOOT), "-s", f"tcp:127.0.0.1:{bench.phone.port}", "reboot"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    command[-1:] = ["getvar", "current-slot"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert "current-slot: a" in done.stderr
    assert bench.screen[-1] == "the system ended: bootloader"
    bench.phone.off()


def test_a_port_without_a_listener_is_not_given_to_a_connection() -> None:
    with held(0) as kept:
        address = kept.getsockname()
        listening(socket.SOCK_STREAM, address[1]).close()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        with socket.socket() as host:
            assert host.connect_ex(address) == errno.ECONNREFUSED


def test_a_program_that_is_being_started_does_not_keep_a_port() -> None:
    with held(0) as kept:
        port = kept.getsockname()[1]
        server = listening(socket.SOCK_STREAM, port)
        with server.dup():
            close(server)
            listening(socket.SOCK_STREAM, port).close()


def test_adb_may_connect_a_second_time(tmp_path: Path) -> None:
    qemu = socket.socket(socket.AF_UNIX)
    qemu.bind(str(tmp_path / "adb"))
    qemu.listen(1)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number = probe.getsockname()[1]
    port = AdbPort(number, tmp_path / "adb")
    port.open()
    with socket.create_connection(("127.0.0.1", number), 5) as first:
        first.sendall(b"CNXN")
        inside, _ = qemu.accept()
        assert inside.recv(4) == b"CNXN"
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", number), 5) as again:
                assert again.recv(1) == b""
        inside.sendall(b"OKAY")
        assert first.recv(4) == b"OKAY"
        port.close()
        assert first.recv(1) == b""
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", number), 1)
    qemu.close()
