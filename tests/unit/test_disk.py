"""Files that are replaced whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.disk import replacing


def test_a_file_has_its_new_contents_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("failure", [ValueError, OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(failure), replacing(path) as partial:
        partial.write_text("half")
        raise failure
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
