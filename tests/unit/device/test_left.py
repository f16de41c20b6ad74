"""Undoing an interrupted run on a phone that may have been changed since."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from writers.played_bench import Bench

from mepof.device.fastboot import Fastboot
from mepof.device.flashing import journal_of, recover
from mepof.device.phone_journal import Entry, Stage
from mepof.errors import WorkError

pytestmark = pytest.mark.skipif(
    shutil.which("fastboot") is None, reason="fastboot is not installed"
)


def left(bench: Bench, at: Stage, fingerprint: str = "") -> Entry:
    """Interrupt a run in a stage; the phone runs what it flashed."""
    bench.on()
    bench.flash()
    journal = journal_of(bench.handset)
    entry = journal.last()
    assert entry is not None
    journal.add(replace(entry, stage=at, fingerprint=fingerprint))
    bench.screen.clear()
    return entry


def stage(bench: Bench) -> str:
    entry = journal_of(bench.handset).last()
    assert entry is not None
    return entry.stage


def builds(bench: Bench, fingerprint: str) -> None:
    """Say of which build the system in the flashed slot is."""
    (bench.root / "programs/system/fingerprint_b").write_text(f"{fingerprint}\n")


def untouched(bench: Bench) -> bool:
    assert bench.phone is not None
    flashed = any(line.startswith("flashed") for line in bench.screen)
    return not flashed and bench.phone.bootloader.state.slot == "b"


@pytest.mark.parametrize("at", ["flashing", "flashed", "activated", "checked", "restoring"])
def test_a_phone_that_nobody_changed_is_restored(bench: Bench, at: Stage) -> None:
    entry = left(bench, at)
    assert recover(bench.handset)
    assert (bench.root / "phone/boot_b.img").read_bytes() == Path(entry.saved).read_bytes()
    assert bench.boots() == "a"


@pytest.mark.parametrize("at", ["flashed", "activated", "checked"])
def test_what_somebody_flashed_since_is_not_overwritten(bench: Bench, at: Stage) -> None:
    left(bench, at)
    for path in ("phone/boot_b.img", "programs/system/boot_b"):
        (bench.root / path).write_bytes(b"an update's")
    with pytest.raises(WorkError, match="it was changed since: boot_b has neither") as caught:
        recover(bench.handset)
    assert "Going back" in str(caught.value.remedy)
    assert untouched(bench)


@pytest.mark.parametrize("at", ["flashing", "activated", "restoring"])
@pytest.mark.parametrize("where", ["in its system", "in its boot loader"])
def test_a_system_that_was_updated_since_is_left_alone(bench: Bench, at: Stage, where: str) -> None:
    left(bench, at, fingerprint="maker/phone:15")
    builds(bench, "maker/phone:16")
    if where == "in its boot loader":
        bench.handset.to_fastboot()
    with pytest.raises(WorkError, match="its system is maker/phone:16 now, not maker/phone:15"):
        recover(bench.handset)
    assert untouched(bench)


def test_an_update_that_is_not_finished_is_not_disturbed(bench: Bench) -> None:
    left(bench, "checked")
    assert bench.phone is not None
    loader = bench.phone.bootloader
    loader.state = loader.state.model_copy(update={"update": "merging"})
    with pytest.raises(WorkError, match="update of the system of played is not finished"):
        recover(bench.handset)
    assert untouched(bench)


def test_a_phone_that_was_restored_by_hand_needs_nothing(bench: Bench) -> None:
    entry = left(bench, "activated")
    fastboot = bench.handset.to_fastboot()
    fastboot.set_active("a")
    fastboot.flash("boot_b", Path(entry.saved))
    fastboot.reboot()
    bench.handset.wait_for_system(None)
    bench.screen.clear()
    assert recover(bench.handset)
    assert stage(bench) == "restored"
    assert bench.screen == []


@pytest.mark.parametrize("where", ["in its system", "in its boot loader"])
def test_another_phone_of_the_same_name_is_left_alone(
    bench: Bench, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = left(bench, "activated")
    journal_of(bench.handset).add(replace(entry, stage="activated", serial="ANOTHER"))
    known = Fastboot.variable
    monkeypatch.setattr(
        Fastboot, "variable", lambda self, n: "THIS" if n == "serialno" else known(self, n)
    )
    if where == "in its boot loader":
        bench.handset.to_fastboot()
    bench.screen.clear()
    with pytest.raises(WorkError, match="was the phone ANOTHER, which an earlier run left half"):
        recover(bench.handset)
    assert untouched(bench)
    # It is not even started.
    assert where == "in its system" or bench.screen == []
