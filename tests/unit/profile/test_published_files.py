"""Outputs are written completely or not at all; pipes and devices are written to directly."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.profile.published import published


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    output, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(output)
    output.write_text("before")
    with pytest.raises(ValueError, match="no"), published(link) as written:
        written.write_text("half of")
        raise ValueError("no")
    assert output.read_text() == "before"
    with published(link) as written:
        written.write_text("after")
        assert output.read_text() == "before"
    assert link.is_symlink() and output.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with published(pipe) as written:
        written.write_text("profile")
    reader.join()
    assert read == ["profile"] and pipe.is_fifo()


def test_standard_output_stays_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    with published(Path("/dev/stdout")) as written:
        written.write_text("profile")
    assert capfd.readouterr().out == "profile"
    assert Path("/dev/stdout").is_symlink()


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    output = tmp_path / "none" / "out"
    with pytest.raises(InputError, match="none/out cannot be written: No such"), published(output):
        pass
