"""Flashing a phone with every fault at every step: it can be started at the end, each time."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from writers.played_bench import MODEL, Bench

from mepof.device import handset
from mepof.device.adb import AdbShell
from mepof.device.fastboot import Fastboot
from mepof.device.flashing import journal_of, recover
from mepof.device.handset import Handset
from mepof.device.phone_journal import Entry, Journal
from mepof.errors import EnvironmentLack, InputError, MepofError, WorkError

pytestmark = pytest.mark.skipif(
    shutil.which("fastboot") is None, reason="fastboot is not installed"
)


def test_the_inactive_slot_is_flashed_started_and_marked(bench: Bench) -> None:
    bench.on()
    former = (bench.root / "phone/boot_b.img").read_bytes()
    done = bench.flash()
    assert (done.partition, done.slot, done.former, done.marked) == ("boot_b", "b", "a", "mepof")
    assert Path(done.saved).read_bytes() == former
    written = (bench.root / "phone/boot_b.img").read_bytes()
    assert written == (bench.root / "new.img").read_bytes()
    assert bench.phone is not None
    assert bench.phone.bootloader.state.b.successful
    # It ran from memory before anything was written.
    starts = [line for line in bench.screen if line.startswith(("started", "flashed"))]
    at = next(i for i, line in enumerate(starts) if line.startswith("flashed"))
    assert "started ram" in starts[:at]
    assert "started boot_b" in starts[at:]
    stages = [line.split('"stage": "')[1].split('"')[0] for line in journal(bench)]
    assert stages == ["begun", "flashing", "flashed", "activated", "checked", "good"]


def journal(bench: Bench) -> list[str]:
    return journal_of(bench.handset).path.read_text().splitlines()


def test_the_active_slot_is_flashed_where_the_other_has_no_system(bench: Bench) -> None:
    bench.model = MODEL.model_copy(update={"flash": "active"})
    bench.on()
    done = bench.flash()
    assert (done.partition, done.slot) == ("boot_a", "a")
    assert bench.boots() == "a"


@pytest.mark.parametrize("status", [1, 70, 127])
def test_a_slot_that_bootctl_does_not_mark_is_kept(bench: Bench, status: int) -> None:
    bench.on()
    (bench.root / "programs/phone/bootctl").write_text(f"#!/bin/sh\necho no HAL\nexit {status}\n")
    done = bench.flash()
    assert (done.slot, done.marked) == ("b", "system")
    assert journal_of(bench.handset).unsettled() is None
    assert bench.boots() == "b"


def test_a_panic_in_the_slot_is_reported_with_its_console(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.on()
    bench.handset.own_image()
    bench.on("boot-loop@b")
    read = AdbShell.read

    def kept(self: AdbShell, path: str) -> str | None:
        return "one\n\nKernel panic\n" if path.endswith("console-ramoops") else read(self, path)

    monkeypatch.setattr(AdbShell, "read", kept)
    with pytest.raises(WorkError, match="did not start the new image") as caught:
        bench.flash()
    first, *console = caught.value.message.splitlines()
    assert first.endswith("its own; played has its former boot_b again")
    assert console == ["  | one", "  | Kernel panic"]


def test_the_only_boot_image_is_flashed_only_if_the_model_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.on()
    bench.handset.own_image()
    monkeypatch.setattr(Handset, "slot", lambda self, fastboot: None)
    with pytest.raises(InputError, match="played has no slots"):
        bench.flash()
    assert not any(line.startswith("flashed") for line in bench.screen)


def test_an_active_slot_that_panics_gets_its_former_image_back(bench: Bench) -> None:
    bench.model = MODEL.model_copy(update={"flash": "active"})
    bench.on()
    bench.handset.own_image()
    former = (bench.root / "phone/boot_a.img").read_bytes()
    bench.on("kernel-panic@a")
    with pytest.raises(MepofError, match="boot_a"):
        bench.flash()
    bench.on()
    recover(bench.handset)
    assert (bench.root / "phone/boot_a.img").read_bytes() == former
    assert bench.boots() == "a"


def test_an_image_is_read_again_from_another_phone_of_the_same_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.on()
    first = bench.handset.own_image()
    assert bench.handset.own_image() == first
    known = Fastboot.variable
    monkeypatch.setattr(
        Fastboot,
        "variable",
        lambda self, name: "B/2" if name == "serialno" else known(self, name),
    )
    assert not (bench.handset.directory / "own-B%2F2.img").exists()
    assert bench.handset.own_image().name == "own-B%2F2.img"
    assert first.exists()


def test_an_image_that_is_on_the_phone_is_not_flashed_again(bench: Bench) -> None:
    bench.on()
    first = bench.flash()
    again = bench.flash()
    assert (again.slot, again.digest) == (first.slot, first.digest)
    assert sum(line.startswith("flashed") for line in bench.screen) == 1


# What each fault leaves: a part of the message, and whether the phone has its former content back.
TABLE = {
    "locked": "is locked",
    "low-battery": "battery of the phone played is low",
    "image-too-large": "more than boot_b",
    "lost-in-download": "the connection to .* broke during `fastboot boot`",
    "lost-in-flash": "broke during `fastboot flash`.* could not be restored",
    "wrong-slot": "did not make the slot b active; .* has its former boot_b again",
    "boot-loop@ram": "did not start the new image: it is up with its own",
    "boot-loop@b": "did not start the new image.*has its former boot_b again",
    "kernel-panic@ram": "went down|cannot be reached|did not start",
    "kernel-panic@b": "has its former boot_b again",
    "full-data@ram": "No space left",
    "full-data@b": "No space left.*has its former boot_b again",
    "slow-boot@ram": "",
    "slow-boot@b": "",
    "adbd-dies@ram": "",
    "adbd-dies@b": "",
}


@pytest.mark.parametrize("fault", TABLE)
def test_a_phone_with_a_fault_can_be_started_at_the_end(bench: Bench, fault: str) -> None:
    expected = TABLE[fault]
    bench.on()
    bench.handset.own_image()
    former = (bench.root / "phone/boot_b.img").read_bytes()
    bench.on(fault)
    if expected:
        with pytest.raises(MepofError, match=expected):
            bench.flash()
        assert bench.boots() == "a"
        # Without the fault, the next run undoes what is left to be undone, and succeeds.
        recover(bench.handset)
        assert (bench.root / "phone/boot_b.img").read_bytes() == former
    done = bench.flash()
    assert done.slot == "b"
    assert bench.boots() == "b"


@pytest.mark.parametrize("stage", ["flashed", "activated", "checked"])
def test_a_full_disk_on_this_machine_does_not_leave_a_phone_flashed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    bench.on()
    former = (bench.root / "phone/boot_b.img").read_bytes()
    add = Journal.add

    def full(journal: Journal, entry: Entry) -> None:
        if entry.stage in (stage, "restoring"):
            raise OSError(errno.ENOSPC, "No space left on device")
        add(journal, entry)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "add", full)
        with pytest.raises(WorkError, match=r"No space left.*has its former boot_b again"):
            bench.flash()
    assert bench.boots() == "a"
    assert (bench.root / "phone/boot_b.img").read_bytes() == former
    assert not recover(bench.handset)


def test_a_copy_that_was_damaged_is_not_flashed_and_the_former_slot_starts(bench: Bench) -> None:
    bench.on()
    bench.handset.own_image()
    bench.on("lost-in-flash")
    with pytest.raises(MepofError):
        bench.flash()
    entry = journal_of(bench.handset).unsettled()
    assert entry is not None
    saved = Path(entry.saved)
    content = saved.read_bytes()
    saved.write_bytes(content[:-1])
    bench.on()
    with pytest.raises(WorkError, match=r"boot_b was not restored: the saved image .* is damaged"):
        recover(bench.handset)
    assert bench.boots() == "a"
    saved.write_bytes(content)
    assert recover(bench.handset)
    assert (bench.root / "phone/boot_b.img").read_bytes() == content


def test_another_phone_under_the_same_name_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, an earlier boot must not be the one that fails.
    bench.model = MODEL.model_copy(update={"boot_seconds": 60})
    bench.on()
    bench.handset.own_image()
    bench.on("lost-in-flash")
    with pytest.raises(MepofError):
        bench.flash()
    bench.on()
    half = (bench.root / "phone/boot_b.img").read_bytes()
    variable = Fastboot.variable
    with monkeypatch.context() as patched:
        patched.setattr(
            Fastboot, "variable", lambda self, n: "NEW" if n == "serialno" else variable(self, n)
        )
        with pytest.raises(WorkError, match="half flashed, and is NEW now"):
            recover(bench.handset)
    assert (bench.root / "phone/boot_b.img").read_bytes() == half
    assert recover(bench.handset)


def test_the_way_back_begins_in_a_system_without_root_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = iter([False, True, False])
    restarted: list[tuple[str, str]] = []

    def no_root(self: Handset) -> AdbShell | None:
        raise EnvironmentLack("it does not give root access")

    monkeypatch.setattr(Handset, "shell", no_root)
    monkeypatch.setattr(Fastboot, "present", lambda self: next(there))
    monkeypatch.setattr(Fastboot, "variable", lambda self, name: None)
    monkeypatch.setattr(handset, "restart", lambda serial, to: restarted.append((serial, to)))
    bench.handset.to_fastboot(without_root=True)
    assert restarted == [(f"127.0.0.1:{bench.adb_port}", "bootloader")]
    with pytest.raises(EnvironmentLack, match="root access"):
        bench.handset.to_fastboot()


@pytest.mark.parametrize("said", ["0x2000000", "2000000", "02000000", "1e00000", "many"])
def test_a_size_is_hexadecimal_however_it_is_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    bench.on()
    variable = Fastboot.variable

    def says(self: Fastboot, name: str) -> str | None:
        return said if name.startswith("partition-size:") else variable(self, name)

    monkeypatch.setattr(Fastboot, "variable", says)
    if said == "many":
        with pytest.raises(InputError, match="says that boot_b has 'many' bytes"):
            bench.flash()
    else:
        assert bench.flash().partition == "boot_b"


def test_a_slow_phone_that_is_not_waited_for_is_restored(bench: Bench) -> None:
    bench.on()
    bench.handset.own_image()
    bench.model = MODEL.model_copy(update={"boot_seconds": 2})
    bench.on("slow-boot@b")
    with pytest.raises(MepofError, match="was not up within 2 s"):
        bench.flash()
    bench.model = MODEL
    recover(bench.handset)
    assert bench.boots() == "a"


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
from writers.played_bench import Bench, check
bench = Bench(Path({at!r}), port={port}, adb_port={adb_port}, check=check)
bench.flash()
"""


def killed_at(bench: Bench, seconds: float | None) -> bool:
    """Flash in a process that is killed after some seconds; whether it had finished."""
    root = Path(__file__).parents[3]
    script = KILLED.format(
        tests=str(root / "tests"),
        root=str(root),
        at=str(bench.root),
        port=bench.port,
        adb_port=bench.adb_port,
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # What it had started is not ended: a fastboot that writes goes on, as on a real host.
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return False
    assert process.returncode == 0, said.decode()
    return True


def test_a_run_that_is_killed_leaves_a_phone_that_starts(bench: Bench) -> None:
    bench.on()
    bench.handset.own_image()
    kills = int(os.environ.get("MEPOF_KILLS", "4"))
    began = time.monotonic()
    assert killed_at(bench, None)
    whole = time.monotonic() - began
    for number in range(kills):
        # Spread over the run, the same in every test.
        at = whole * ((number * 0.618034) % 1)
        killed_at(bench, at)
        slot = bench.boots()
        assert slot in "ab"
        assert killed_at(bench, None), "the next run does not finish"
        assert journal_of(bench.handset).unsettled() is None
