"""A run during which faults of all kinds strike ends with the same digests."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from .chaos import FAULTS, endured


@pytest.mark.patient
def test_faults_change_no_digest(tmp_path: Path) -> None:
    counts = dict.fromkeys(FAULTS, 5)
    made = endured(tmp_path, counts, workers=4, silence=15)
    assert made.struck == counts
    assert made.noted["has a full disk"] == 5
    assert made.same
