from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

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


def test_two_threads_keep_the_same_boot_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, write = Barrier(2, timeout=30), Path.write_bytes

    def written_by_both(path: Path, data: bytes) -> int:
        done = write(path, data)
        both.wait()
        return done

    monkeypatch.setattr(Path, "write_bytes", written_by_both)
    boot = Boot(seed=7, cases=())
    kept = KeptBoots(tmp_path, "kernel")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(kept.keep, (boot, boot)))
    assert kept.find(7) == boot
