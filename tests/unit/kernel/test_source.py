"""Kernel source trees, and their releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.kernel import source


@pytest.mark.parametrize("text", ["", "VERSION = six\n", "VERSION = 6\nPATCHLEVEL = 12\n"])
def test_a_makefile_without_a_version_is_not_a_kernels(tmp_path: Path, text: str) -> None:
    (tmp_path / "Makefile").write_text(text)
    with pytest.raises(InputError, match="its Makefile does not state a version"):
        source.version_of(tmp_path)


def test_releases_are_ordered_by_number_not_by_text() -> None:
    version = source.KernelVersion(6, 12, 3)
    assert version.at_least(6, 9) and version.at_least(6, 12) and version.at_least(5, 99)
    assert not version.at_least(6, 13) and not version.at_least(7, 0)
