"""The records of the architectures."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.arch import Arch, Bus, Machine
from mepof.described import read_described
from mepof.errors import InputError

MACHINES = {
    "x86-64": Machine(
        binary="qemu-system-x86_64",
        package="qemu-system-x86",
        cpu="max",
        repeat_core="skylake",
        arguments=(
            *("-machine", "microvm,acpi=off,x-option-roms=off,pit=on,pic=on,rtc=on"),
            *("-cpu", "{cpu}"),
            *("-device", "virtio-serial-device"),
            *("-global", "virtio-mmio.ioeventfd=off"),
        ),
        options=("VIRTIO_MMIO", "VIRTIO_MMIO_CMDLINE_DEVICES"),
        pci=Bus(
            arguments=(
                *("-machine", "q35,pit=on,hpet=off,smm=off,vmport=off"),
                *("-cpu", "{cpu}"),
                *("-device", "virtio-serial-pci,disable-legacy=on,ioeventfd=off"),
            ),
            options=("VIRTIO_PCI", "ACPI"),
        ),
        parameters="console=ttyS0 reboot=t noapictimer lpj=4000000",
        real_time="no_timer_check",
        early_console="earlyprintk=serial,ttyS0",
        max_cpus=8,
    ),
    "arm64": Machine(
        binary="qemu-system-aarch64",
        package="qemu-system-arm",
        cpu="max,pauth-impdef=on",
        arguments=(
            *("-machine", "virt,gic-version=3,its=off"),
            *("-cpu", "{cpu}"),
            *("-device", "virtio-serial-device"),
            *("-global", "virtio-mmio.ioeventfd=off"),
        ),
        options=("VIRTIO_MMIO",),
        parameters="console=ttyAMA0",
        early_console="earlycon",
        max_cpus=8,
    ),
    "arm": Machine(
        binary="qemu-system-arm",
        package="qemu-system-arm",
        cpu="cortex-a15",
        arguments=(
            *("-machine", "virt,highmem=off"),
            *("-cpu", "{cpu}"),
            *("-device", "virtio-serial-device"),
            *("-global", "virtio-mmio.ioeventfd=off"),
        ),
        options=("VIRTIO_MMIO",),
        parameters="console=ttyAMA0",
        early_console="earlycon",
    ),
    "um": None,
}
BUILDS = {
    "x86-64": ("x86_64", "x86", "x86_64-linux-gnu", "bzImage", "arch/x86/boot/bzImage"),
    "arm64": ("arm64", "arm64", "aarch64-linux-gnu", "Image", "arch/arm64/boot/Image"),
    "arm": ("arm", "arm", "arm-linux-gnueabi", "zImage", "arch/arm/boot/zImage"),
    "um": ("um", "um", "x86_64-linux-gnu", "linux", "linux"),
}


def test_every_architecture_has_a_record_that_is_read() -> None:
    assert set(arch.names()) == set(BUILDS)
    assert [each.name for each in arch.records()] == list(arch.names())
    assert arch.DEFAULT in arch.names()


@pytest.mark.parametrize("name", arch.names())
def test_what_kbuild_and_the_emulator_are_given_does_not_change(name: str) -> None:
    # Images and counts that were made before would no longer be reproduced.
    each = arch.get(name)
    assert (each.make, each.source, each.triple, each.target, each.image) == BUILDS[name]
    assert each.machine == MACHINES[name]


def test_the_default_architecture_supports_every_stage() -> None:
    each = arch.get(arch.DEFAULT)
    assert each.guest is not None and each.machine is not None and each.pages is not None


def test_what_boots_has_programs_to_boot_with() -> None:
    assert all(each.guest is not None for each in arch.records() if each.machine is not None)


@pytest.mark.parametrize(
    ("cpu", "host", "crossed"), [("x86_64", "x86-64", "arm64"), ("aarch64", "arm64", "x86-64")]
)
def test_a_guest_of_this_machines_architecture_is_not_crossed(
    monkeypatch: pytest.MonkeyPatch, cpu: str, host: str, crossed: str
) -> None:
    monkeypatch.setattr(arch, "machine", lambda: cpu)
    assert arch.host() == host
    own, other = arch.get(host).guest, arch.get(crossed).guest
    assert own is not None and own.compiler == "musl-gcc" and own.shell
    assert other is not None and not other.shell
    assert other.compiler == f"{arch.get(crossed).cross_prefix}gcc"
    arm = arch.get("arm").guest
    assert arm is not None and arm.compiler == "arm-linux-gnueabi-gcc"


def test_an_unknown_architecture_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown architecture `riscv`") as caught:
        arch.get("riscv")
    assert caught.value.remedy == "known: " + ", ".join(arch.names())


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ('endian = "big"', "unknown key `endian`"),
        ("[pages]\ntext = 4096\ndata = 5000", "5000 is not a power of two"),
        ('[pages]\ntext = "4 KiB"\ndata = 4096', "`pages.text` must be an integer"),
    ],
    ids=["unknown key", "odd page", "wrong type"],
)
def test_a_wrong_record_is_an_error(tmp_path: Path, added: str, complaint: str) -> None:
    plain = "\n".join(f'{key} = "x"' for key in ("make", "source", "triple", "target", "image"))
    plain += '\nelf_machine = 9\nmagic = [{ at = 2, data = "0aff" }]'
    path = tmp_path / "new.toml"
    path.write_text(f"{plain}\n")
    assert read_described(path, Arch, "architecture", {"name": "new"}).guest is None
    path.write_text(f"{plain}\n{added}\n")
    with pytest.raises(InputError, match=complaint):
        read_described(path, Arch, "architecture", {"name": "new"})


def test_cross_tools_are_named_by_the_triple() -> None:
    found: Arch = arch.get("arm64")
    assert found.cross_prefix == "aarch64-linux-gnu-"
    assert found.guest is not None and found.guest.compiler == f"{found.cross_prefix}gcc"
