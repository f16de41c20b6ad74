"""Initramfs archives, read back by cpio."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.device.initramfs import Entry, archive

needs_cpio = pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")

ENTRIES = (
    Entry("dev", 0o755),
    Entry("dev/console", 0o600, b"", device=(5, 1)),
    Entry("bin", 0o755),
    Entry("bin/init", 0o755, b"#!\x00\xff" * 7),
    Entry("empty", 0o644, b""),
)


def cpio(image: bytes, *options: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run(["cpio", *options], input=image, capture_output=True, check=True, cwd=cwd)
    return done.stdout.decode().splitlines()


@needs_cpio
def test_cpio_lists_every_entry_with_kind_mode_and_device() -> None:
    assert cpio(archive(ENTRIES), "-t", "--quiet") == [entry.path for entry in ENTRIES]
    listed = cpio(archive(ENTRIES), "-tvn", "--quiet")
    assert [line.split()[0] for line in listed] == [
        *("drwxr-xr-x", "crw-------", "drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"),
    ]
    assert "5,   1" in listed[1]


@needs_cpio
def test_cpio_unpacks_the_same_contents(tmp_path: Path) -> None:
    files = [entry for entry in ENTRIES if entry.device is None]
    cpio(archive(files), "-i", "--quiet", cwd=tmp_path)
    assert (tmp_path / "bin/init").read_bytes() == b"#!\x00\xff" * 7
    assert (tmp_path / "bin/init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "empty").read_bytes() == b""


@pytest.mark.parametrize("size", range(9))
def test_another_archive_can_follow_whatever_the_sizes(size: int) -> None:
    entries = [Entry("n" * (size + 1), 0o644, b"x" * size)]
    image = archive(entries)
    assert image == archive(entries)
    assert image.startswith(b"070701")
    assert len(image) % 512 == 0
