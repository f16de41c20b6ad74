"""The non-zero blocks of an empty ext4 file system, for a guest's block device of zeros."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.process import find_tool, of_machine, run

_BLOCK = 4096
_REMEDY = "apt-get install e2fsprogs"
# Everything that mke2fs would draw at random or take from the clock is fixed. All tables are
# written here; otherwise a thread of the guest's kernel would write them while cases run.
#
# mke2fs takes the features that make a file system ext4 from its configuration, which differs
# between machines: these are Debian's.
_FEATURES = (
    *("none", "has_journal", "extent", "huge_file", "flex_bg", "metadata_csum", "64bit"),
    *("dir_nlink", "extra_isize", "sparse_super", "large_file", "filetype", "resize_inode"),
    *("dir_index", "ext_attr"),
)
_OPTIONS = (
    *("-q", "-F", "-t", "ext4", "-b", str(_BLOCK), "-I", "256", "-J", "size=4"),
    *("-O", ",".join(_FEATURES)),
    *("-U", "6d65706f-6600-4000-8000-000000000001"),
    *(
        "-E",
        "hash_seed=6d65706f-6600-4000-8000-000000000002,lazy_itable_init=0,lazy_journal_init=0",
    ),
)
_ENVIRONMENT = {"E2FSPROGS_FAKE_TIME": "1704067200", "MKE2FS_CONFIG": "/dev/null"}


@of_machine
@cache
def identity() -> Mapping[str, str]:
    """What decides the bytes of :func:`make`.

    Raises:
        EnvironmentLack: mke2fs is not installed.
    """
    said = run([_tool(), "-V"]).output.splitlines()[0]
    return {"mke2fs": said, "mke2fs options": sha256(repr(_OPTIONS).encode()).hexdigest()}


def make(mebibytes: int, work: Path, runner: Callable[..., object]) -> bytes:
    """The file from which the guest's programs lay out the file system
    (``native/suites/scratch.c``): the size in MiB, then offset, size and contents of each run of
    blocks. All numbers have 64 bits, little endian.

    Args:
        work: scratch directory.
        runner: runs a program like :func:`mepof.process.run`.
    """
    image = work / "scratch.img"
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    runner([_tool(), *_OPTIONS, image], env=_ENVIRONMENT)
    runs = b"".join(struct.pack("<QQ", at, len(data)) + data for at, data in _runs(image))
    image.unlink()
    return struct.pack("<Q", mebibytes) + runs


def _runs(image: Path) -> Iterator[tuple[int, bytes]]:
    """Runs of adjacent blocks that are not zero, with their offsets."""
    zero = bytes(_BLOCK)
    start, held = 0, b""
    with image.open("rb") as file:
        at = 0
        while block := file.read(_BLOCK):
            if block == zero:
                if held:
                    yield start, held
                held = b""
            else:
                start = start if held else at
                held += block
            at += len(block)
    if held:
        yield start, held


def _tool() -> str:
    # /sbin is not in every user's PATH.
    found = Path("/sbin/mke2fs")
    return str(found) if found.is_file() else find_tool("mke2fs", _REMEDY)
