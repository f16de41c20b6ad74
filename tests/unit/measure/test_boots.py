from __future__ import annotations

from pathlib import Path

from mepof.measure.boots import KeptBoots
from mepof.measure.measurement import Boot


def test_a_boot_is_found_by_its_identity_and_seed(tmp_path: Path) -> None:
    kept, other = KeptBoots(tmp_path, ("kernel", 1)), KeptBoots(tmp_path, ("kernel", 2))
    boot = Boot(seed=7, cases=())
    assert kept.find(7) is None
    kept.keep(boot)
    assert kept.find(7) == boot
    assert kept.find(8) is None
    assert other.find(7) is None
    assert KeptBoots(tmp_path, ("kernel", 1)).find(7) == boot


def test_a_truncated_boot_counts_as_absent(tmp_path: Path) -> None:
    kept = KeptBoots(tmp_path, "kernel")
    kept.keep(Boot(seed=7, cases=()))
    (path,) = tmp_path.rglob("*.json")
    path.write_text(path.read_text()[:-3])
    assert kept.find(7) is None
