"""Boot images of every version, from mkbootimg's own defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel, some

from mepof.bootimg.directory import packed
from mepof.bootimg.image import write


@pytest.fixture
def boot_image(tmp_path: Path) -> bytes:
    """A boot image of version 2 with a kernel of arm64."""
    directory = tmp_path / "boot"
    directory.mkdir()
    parts = {"kernel": arm64_kernel(), "ramdisk": b"070701" + some(5000, 1), "dtb": some(3000, 2)}
    for name, data in parts.items():
        (directory / name).write_bytes(data)
    files = "\n".join(f'{name} = "{name}"' for name in parts)
    (directory / "bootimg.toml").write_text(
        f'header_version = 2\ncmdline = "console=ttyS0"\n[files]\n{files}\n'
    )
    return write(packed(directory))
