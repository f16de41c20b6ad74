"""Compressed files: those that Python decompresses, and those that zstd does."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import zlib
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from mepof.magic import BZIP2, GZIP, XZ, ZSTD
from mepof.process import find_tool

STREAMS: dict[bytes, Callable[[IO[bytes]], BufferedIOBase]] = {
    GZIP: lambda stream: gzip.GzipFile(fileobj=stream),
    XZ: lzma.LZMAFile,
    BZIP2: bz2.BZ2File,
}
"""What reads a stream, by what it begins with."""

MAGICS = (ZSTD, *STREAMS)
"""What a compressed file begins with: with zstd's, :func:`by_zstd` decompresses it."""

_STEP = 1 << 20


class Damaged(Exception):
    """Compressed data that cannot be decompressed."""


def copy(source: IO[bytes], target: IO[bytes], head: bytes) -> None:
    """Copy a stream, decompressed if it is compressed.

    Args:
        head: what the stream begins with, 6 bytes or more if it has as many.

    Raises:
        Damaged: what is in it is.
        OSError: a file cannot be read or written.
    """
    opened = next((opened for magic, opened in STREAMS.items() if head.startswith(magic)), None)
    try:
        if opened is None:
            shutil.copyfileobj(source, target, _STEP)
            return
        with opened(source) as stream:
            shutil.copyfileobj(stream, target, _STEP)
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise Damaged(str(error)) from error
    except OSError as error:
        if error.errno is not None:  # of a file, not of what is in it
            raise
        raise Damaged(str(error)) from error


def by_zstd(packed: Path, target: Path) -> list[str | Path]:
    """The command that writes a file decompressed by zstd.

    Raises:
        EnvironmentLack: zstd is not installed.
    """
    return [find_tool("zstd", "apt-get install zstd"), "-dqf", "-o", target, packed]
