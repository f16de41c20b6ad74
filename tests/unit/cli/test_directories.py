"""Directories that the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.shell import Shell, assert_refused


def test_a_directory_for_temporary_files_must_be_there(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name, why in (("gone", "No such file or directory"), ("file", "Not a directory")):
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        found = shell("g4", "check", tmp_path / "program.g4")
        assert_refused(found, f"TMPDIR, {tmp_path / name}, cannot be used: {why}")
    assert shell("--version").status == 0


def test_a_removed_current_directory_is_named(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert_refused(shell("run", "program.g4"), "the current directory was removed")
