"""What a phone's boot loader and systems say before its other slot is flashed and started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from writers.played_bench import MODEL, Bench

from mepof.device.fastboot import Fastboot
from mepof.device.flashing import journal_of, recover
from mepof.errors import MepofError, WorkError

pytestmark = pytest.mark.skipif(
    shutil.which("fastboot") is None, reason="fastboot is not installed"
)


def has(bench: Bench, **changes: object) -> None:
    """Change the state that the phone's boot loader keeps."""
    assert bench.phone is not None
    loader = bench.phone.bootloader
    loader.state = loader.state.model_copy(update=changes)


def slot_has(bench: Bench, **changes: object) -> None:
    assert bench.phone is not None
    has(bench, b=bench.phone.bootloader.state.b.model_copy(update=changes))


def wrote(bench: Bench) -> bool:
    return any(line.startswith("flashed") for line in bench.screen)


def test_a_slot_that_never_started_is_not_flashed(bench: Bench) -> None:
    bench.on()
    slot_has(bench, successful=False)
    with pytest.raises(WorkError, match="slot b of played has never started a system") as caught:
        bench.flash()
    assert "docs/devices/phone.md" in str(caught.value.remedy)
    assert not wrote(bench)
    assert bench.boots() == "a"


def test_a_slot_that_cannot_be_started_is_not_flashed(bench: Bench) -> None:
    bench.on()
    slot_has(bench, unbootable=True)
    with pytest.raises(WorkError, match="slot b of played cannot be started"):
        bench.flash()
    assert not wrote(bench)


def test_the_active_slot_is_flashed_whatever_the_other_one_is(bench: Bench) -> None:
    bench.model = MODEL.model_copy(update={"flash": "active"})
    bench.on()
    slot_has(bench, unbootable=True, successful=False)
    assert bench.flash().slot == "a"


@pytest.mark.parametrize("status", ["snapshotted", "merging"])
@pytest.mark.parametrize("which", ["inactive", "active"])
def test_nothing_is_flashed_while_the_system_is_updated(
    bench: Bench, status: str, which: str
) -> None:
    bench.model = MODEL.model_copy(update={"flash": which})
    bench.on()
    has(bench, update=status)
    with pytest.raises(WorkError, match=f"update of the system of played is not .*{status}"):
        bench.flash()
    assert not wrote(bench)


def test_a_boot_loader_that_knows_nothing_of_slots_refuses_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.on()
    slot_has(bench, successful=False)
    known = Fastboot.variable
    unknown = ("slot-unbootable", "slot-successful", "snapshot-update-status")
    monkeypatch.setattr(
        Fastboot,
        "variable",
        lambda self, name: None if name.startswith(unknown) else known(self, name),
    )
    assert bench.flash().slot == "b"


@pytest.mark.parametrize(
    ("state", "why"),
    [({"unbootable": True}, "cannot be started"), ({"successful": False}, "has never started")],
)
def test_a_slot_is_checked_whose_name_has_an_underscore(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, state: dict[str, bool], why: str
) -> None:
    bench.on()
    slot_has(bench, **state)
    known = Fastboot.variable

    def variable(self: Fastboot, name: str) -> str | None:
        """As boot loaders of Motorola's answer."""
        if name.startswith(("slot-unbootable:", "slot-successful:")):
            kind, _, slot = name.partition(":")
            return known(self, f"{kind}:{slot[1:]}") if slot.startswith("_") else None
        return known(self, name)

    monkeypatch.setattr(Fastboot, "variable", variable)
    with pytest.raises(WorkError, match=f"slot b of played {why}"):
        bench.flash()
    assert not wrote(bench)


def failed_once(bench: Bench) -> Path:
    """Flash a phone whose slot then fails, so that its boot loader forgets that it has started."""
    bench.on()
    bench.handset.own_image()
    bench.on("full-data@b")
    with pytest.raises(MepofError, match="has its former boot_b again"):
        bench.flash()
    bench.on()
    assert bench.phone is not None
    assert not bench.phone.bootloader.state.b.successful
    return bench.root / "phone/boot_b.img"


def test_a_slot_that_mepof_restored_is_flashed_again(bench: Bench) -> None:
    failed_once(bench)
    assert bench.flash().slot == "b"


def test_a_restored_slot_that_somebody_changed_since_is_not_flashed(bench: Bench) -> None:
    other = failed_once(bench)
    other.write_bytes(other.read_bytes() + b"other")
    with pytest.raises(WorkError, match="boot_b of played is not what an earlier run left there"):
        bench.flash()
    assert not wrote(bench)


def other_vbmeta(bench: Bench, at: int) -> None:
    """Let the vbmeta of the two slots differ in one byte."""
    meta = bytearray(4096)
    for slot in "ab":
        (bench.root / f"programs/system/vbmeta_{slot}").write_bytes(meta)
        meta[at] = 2


@pytest.mark.parametrize("at", [119, 124, 300])
def test_a_slot_with_another_build_is_not_flashed(bench: Bench, at: int) -> None:
    bench.on()
    other_vbmeta(bench, at)
    with pytest.raises(WorkError, match="slot b of played has another build than a: vbmeta_b"):
        bench.flash()
    assert not wrote(bench)


@pytest.mark.parametrize("at", [120, 123])
def test_a_slot_whose_verification_is_disabled_is_flashed(bench: Bench, at: int) -> None:
    bench.on()
    other_vbmeta(bench, at)
    assert bench.flash().slot == "b"


def test_a_slot_with_another_system_is_left_again(bench: Bench) -> None:
    bench.on()
    former = (bench.root / "phone/boot_b.img").read_bytes()
    for slot, build in (("a", "maker/phone:16"), ("b", "maker/phone:15")):
        (bench.root / f"programs/system/fingerprint_{slot}").write_text(f"{build}\n")
    with pytest.raises(
        WorkError,
        match=r"slot b of played has another system than a: maker/phone:15, not maker/phone:16; "
        "played has its former boot_b again",
    ):
        bench.flash()
    assert (bench.root / "phone/boot_b.img").read_bytes() == former
    assert bench.boots() == "a"
    assert journal_of(bench.handset).unsettled() is None
    assert not recover(bench.handset)
