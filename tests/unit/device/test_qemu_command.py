"""QEMU's command line, word for word: what a boot is given decides every count and profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mepof.device import agent, qemu
from mepof.device.observation import Branches, Measure
from mepof.device.protocol import Session
from mepof.errors import InputError
from mepof.process import run

from .fake_qemu import HELLO, POWERED_OFF, PROGRAM, FakeQemu, result

X86_64 = """
-machine microvm,acpi=off,x-option-roms=off,pit=on,pic=on,rtc=on
-cpu max
-device virtio-serial-device
-global virtio-mmio.ioeventfd=off
"""
ARM64 = """
-machine virt,gic-version=3,its=off
-cpu max,pauth-impdef=on
-device virtio-serial-device
-global virtio-mmio.ioeventfd=off
"""
PCI = """
-machine q35,pit=on,hpet=off,smm=off,vmport=off
-cpu max
-device virtio-serial-pci,disable-legacy=on,ioeventfd=off
"""
COMMON = """
-accel tcg
-icount shift=0,sleep=off
-seed 7
-rtc base=2024-01-01T00:00:00,clock=vm
-m 512
-smp 1
-nodefaults
-no-user-config
-no-reboot
-display none
-kernel ROOT/kernel
-initrd ROOT/boot/initramfs
"""
FILE_CONSOLE = """
-chardev file,path=ROOT/boot/console.log,id=console
-serial chardev:console
"""
PORT = """
-chardev file,id=agent,path=ROOT/boot/replies
-device virtserialport,chardev=agent,name=mepof
"""
COMMON_PARAMETERS = "panic=-1 oops=panic nokaslr norandmaps"
X86_64_APPEND = f"-append console=ttyS0 reboot=t noapictimer lpj=4000000 {COMMON_PARAMETERS}\n"
ARM64_APPEND = f"-append console=ttyAMA0 {COMMON_PARAMETERS}\n"
BOOT = X86_64 + COMMON + X86_64_APPEND + FILE_CONSOLE + PORT
# A model of a core reads page tables in it.
READABLE_MEMORY = """
-object memory-backend-memfd,id=memory,size=512M
-machine memory-backend=memory
"""
BOOT_ARM64 = ARM64 + COMMON + ARM64_APPEND + FILE_CONSOLE + PORT


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQemu]:
    made = FakeQemu(tmp_path / "bin")
    made.install()
    (made.directory / "qemu-system-aarch64").symlink_to(made.directory / PROGRAM)
    monkeypatch.setenv("PATH", f"{made.directory}:/usr/bin:/bin")
    made.will(
        replies=HELLO + result() + POWERED_OFF,
        counts=json.dumps({"intervals": []}).encode(),
        trace=b"MEPOFTRC",
    )
    qemu._version.cache_clear()
    yield made
    qemu._version.cache_clear()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "initramfs.cpio").write_bytes(b"shared image")
    return Session(
        arch="x86-64",
        kernel=tmp_path / "kernel",
        initramfs=tmp_path / "initramfs.cpio",
        requests=(agent.Exec(("/bin/true",), 5),),
        seed=7,
        artifacts={name: tmp_path / name for name in ("plugins", "pmu")},
    )


def check(fake: FakeQemu, session: Session, root: Path, expected: str) -> None:
    """Boot, and compare what QEMU was called with, an option and its value on each line."""
    qemu.DEVICE.boot(session, root / "boot", run, lambda count: None)
    words = "\n".join(fake.arguments())
    lines = [line for line in expected.replace("ROOT", str(root)).splitlines() if line]
    assert words == "\n".join(word for line in lines for word in line.split(" ", 1))


def test_a_boot_is_started_by_these_words(fake: FakeQemu, session: Session, tmp_path: Path) -> None:
    check(fake, session, tmp_path, BOOT)
    check(fake, replace(session, arch="arm64"), tmp_path, BOOT_ARM64)


@pytest.mark.parametrize(
    ("options", "machine"),
    [
        # Debian's configuration for the cloud.
        ("VIRTIO_PCI=y ACPI=y VIRTIO_MMIO=m", PCI),
        ("VIRTIO_PCI=y ACPI=y VIRTIO_MMIO=y VIRTIO_MMIO_CMDLINE_DEVICES=y", X86_64),
        # Nothing says where the devices of microvm are.
        ("VIRTIO_PCI=y ACPI=y VIRTIO_MMIO=y", PCI),
        ("VIRTIO_PCI=m ACPI=y VIRTIO_MMIO=m", PCI),
        ("", X86_64),
    ],
)
def test_a_kernel_gets_the_machine_on_which_it_finds_its_devices(
    fake: FakeQemu, session: Session, tmp_path: Path, options: str, machine: str
) -> None:
    config = "".join(f"CONFIG_{option}\n" for option in options.split())
    words = machine + COMMON + X86_64_APPEND + FILE_CONSOLE + PORT
    check(fake, replace(session, config=config), tmp_path, words)


def test_a_boot_at_the_users_terminal_is_started_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    append = X86_64_APPEND.replace("\n", " quiet\n")
    console = """
-chardev stdio,signal=off,logfile=ROOT/boot/console.log,id=console
-serial chardev:console
"""
    command = X86_64 + COMMON + append + console + PORT
    check(fake, replace(session, interactive=True), tmp_path, command)


def test_counting_is_asked_for_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    counted = replace(session, measure=Measure())
    plugin = "-plugin ROOT/plugins/count.so,out=ROOT/boot/counts.json\n"
    check(fake, counted, tmp_path, BOOT + plugin)
    check(fake, replace(counted, arch="arm64"), tmp_path, BOOT_ARM64 + plugin)


def test_several_cpus_are_asked_for_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    several = BOOT.replace("-smp 1\n", "-smp 4\n")
    check(fake, replace(session, cpus=4), tmp_path, several)
    plugin = "-plugin ROOT/plugins/count.so,out=ROOT/boot/counts.json,cpus=turns\n"
    check(fake, replace(session, cpus=4, measure=Measure()), tmp_path, several + plugin)
    plugin = (
        "-plugin ROOT/pmu/pmu.so,out=ROOT/boot/counts.json,line=64,cpus=turns" + READABLE_MEMORY
    )
    modelled = Measure("zen4", ("line=64",))
    check(fake, replace(session, cpus=4, measure=modelled), tmp_path, several + plugin)
    fake.will(branches=b"")
    trace = "out=ROOT/boot/branches.trace,span=session,cpus=turns"
    plugin = f"-plugin ROOT/plugins/record.so,{trace}\n"
    check(fake, replace(session, cpus=4, record=Branches()), tmp_path, several + plugin)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"arch": "arm64", "cpus": 9}, "boots arm64 kernels with at most 8 CPUs, not 9"),
        ({"cpus": 9}, "boots x86-64 kernels with at most 8 CPUs, not 9"),
    ],
)
def test_cpus_that_a_guest_cannot_have_are_refused(
    fake: FakeQemu, session: Session, tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"^the device qemu {message} \("):
        check(fake, replace(session, **{"cpus": 2, **more}), tmp_path, "")


def test_modelling_a_core_is_asked_for_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    model = Measure("zen4", ("line=64", "l1i=64:8"))
    plugin = "-plugin ROOT/pmu/pmu.so,out=ROOT/boot/counts.json,line=64,l1i=64:8\n"
    modelling = replace(session, measure=model)
    check(fake, modelling, tmp_path, BOOT + plugin + READABLE_MEMORY)
    arm64 = replace(modelling, arch="arm64")
    check(fake, arm64, tmp_path, BOOT_ARM64 + plugin + READABLE_MEMORY)
    emulated = BOOT.replace("-cpu max", "-cpu EPYC-Genoa")
    assert emulated != BOOT
    given = replace(modelling, measure=replace(model, cpu="EPYC-Genoa"))
    check(fake, given, tmp_path, emulated + plugin + READABLE_MEMORY)
    larger = (BOOT + plugin + READABLE_MEMORY).replace("-m 512", "-m 1024")
    larger = larger.replace("size=512M", "size=1024M")
    check(fake, replace(modelling, memory=1024), tmp_path, larger)


def test_locations_of_events_are_asked_for_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(places=b"{}")
    model = Measure("zen4", ("line=64", "l1i=64:8"), locations=True)
    check(
        fake,
        replace(session, measure=model),
        tmp_path,
        BOOT
        + "-plugin ROOT/pmu/pmu.so,out=ROOT/boot/counts.json,where=ROOT/boot/places.jsonl,"
        + "line=64,l1i=64:8\n"
        + READABLE_MEMORY,
    )


@pytest.mark.parametrize(
    ("period", "depth", "how"),
    [
        (None, 16, "span=session"),
        (10007, 32, "span=session,sample=10007,depth=32"),
    ],
)
def test_recording_is_asked_for_by_these_words(
    fake: FakeQemu, session: Session, tmp_path: Path, period: int | None, depth: int, how: str
) -> None:
    recorded = replace(session, record=Branches(period, depth))
    plugin = f"-plugin ROOT/plugins/record.so,out=ROOT/boot/branches.trace,{how}\n"
    check(fake, recorded, tmp_path, BOOT + plugin)
    check(fake, replace(recorded, arch="arm64"), tmp_path, BOOT_ARM64 + plugin)
    emulated = BOOT.replace("-cpu max", "-cpu EPYC-Genoa")
    given = replace(session, record=Branches(period, depth, "EPYC-Genoa"))
    check(fake, given, tmp_path, emulated + plugin)
