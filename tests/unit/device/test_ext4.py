"""A file system for a guest's block device."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from mepof.device import ext4
from mepof.process import run

pytestmark = pytest.mark.skipif(
    shutil.which("mke2fs", path="/sbin:/usr/sbin") is None, reason="e2fsprogs is not installed"
)


def laid_out(blocks: bytes, image: Path) -> None:
    """What ``scratch.c`` does with the file."""
    (mebibytes,) = struct.unpack_from("<Q", blocks)
    at = 8
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
        while at < len(blocks):
            offset, size = struct.unpack_from("<QQ", blocks, at)
            file.seek(offset)
            file.write(blocks[at + 16 : at + 16 + size])
            at += 16 + size


def test_it_is_a_valid_file_system_and_small(tmp_path: Path) -> None:
    blocks = ext4.make(16, tmp_path, run)
    assert len(blocks) < 2 << 20
    image = tmp_path / "image"
    laid_out(blocks, image)
    assert image.stat().st_size == 16 << 20
    assert run(["/sbin/e2fsck", "-n", "-f", image], check=False).status == 0


def test_it_has_the_features_of_ext4(tmp_path: Path) -> None:
    laid_out(ext4.make(16, tmp_path, run), tmp_path / "image")
    # The superblock lies at 1024; its words of features at 0x5c from there.
    features = struct.unpack_from("<II", (tmp_path / "image").read_bytes(), 1024 + 0x5C)
    journal, extents = 0x4, 0x40
    assert features[0] & journal
    assert features[1] & extents


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    assert ext4.make(16, one, run) == ext4.make(16, two, run)
    assert list(one.iterdir()) == []


def test_its_options_are_part_of_its_identity() -> None:
    assert set(ext4.identity()) == {"mke2fs", "mke2fs options"}
