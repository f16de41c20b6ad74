"""How kernels and ramdisks are compressed: recognise, decompress, compress.

Python's own libraries decode gzip, xz, lzma and bzip2, and what is here decodes lz4. Zstandard, and
compressing with lz4, is left to the programs that kbuild calls (decision 26).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mepof.bootimg.lz4 import decode_frame, decode_legacy
from mepof.errors import InputError, WorkError
from mepof.process import find_tool, run

MAX_DECOMPRESSED = 512 << 20
"""Bytes; no kernel has as many."""

# The kernel's xz_wrap.sh has dictionaries of up to 128 MiB.
_MEMORY_BYTES = 160 << 20
_STEP = 64 << 10


class Damaged(Exception):
    """Compressed data that cannot be decoded."""


class Truncated(Damaged):
    """Compressed data whose end is missing."""


class _Decoder(Protocol):
    """What the decoders of ``lzma`` and ``bz2`` have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True)
class Decoded:
    """What a stream decodes to.

    Attributes:
        content: up to the limit that was asked for.
        size: bytes of the stream; None if the limit came before its end.
    """

    content: bytes
    size: int | None


@dataclass(frozen=True)
class Compression:
    """A format of compressed data.

    Attributes:
        name: what the command line calls it.
        suffix: kbuild's, of an ``Image`` that is compressed so.
        magic: what its streams begin with.
    """

    name: str
    suffix: str
    magic: bytes
    program: str = ""


COMPRESSIONS = (
    Compression("gzip", "gz", b"\x1f\x8b\x08"),
    Compression("lz4-legacy", "lz4", b"\x02\x21\x4c\x18", "lz4"),
    Compression("lz4", "lz4", b"\x04\x22\x4d\x18", "lz4"),
    Compression("xz", "xz", b"\xfd7zXZ\0"),
    Compression("zstd", "zst", b"\x28\xb5\x2f\xfd", "zstd"),
    Compression("bzip2", "bz2", b"BZh"),
    # Properties 5d, and a dictionary of a multiple of 64 KiB.
    Compression("lzma", "lzma", b"\x5d\0\0"),
    Compression("lzo", "lzo", b"\x89LZO\0\r\n\x1a\n"),
)
NAMES = tuple(each.name for each in COMPRESSIONS if each.name != "lzo")
"""Those that :func:`compress` knows."""


def recognise(data: bytes | memoryview) -> Compression | None:
    """The format that data begins like; None if it is not compressed."""
    head = bytes(memoryview(data)[:16])
    return next((each for each in COMPRESSIONS if head.startswith(each.magic)), None)


def decode(data: bytes | memoryview, limit: int) -> Decoded | None:
    """Decode without another program, and with at most 160 MiB of memory.

    Args:
        limit: in bytes, of the content.

    Returns:
        None for a format that another program decodes.

    Raises:
        Damaged: the data is not compressed, or damaged before ``limit``.
        Truncated: it ends before its end mark and before ``limit``.
    """
    view = memoryview(data)
    kind = recognise(view)
    if kind is None:
        raise Damaged("it is not compressed")
    decoders: dict[str, Callable[[], Decoded]] = {
        "gzip": lambda: _gzip(view, limit),
        "xz": lambda: _by_library(_lzma(lzma.FORMAT_XZ), view, limit),
        "lzma": lambda: _by_library(_lzma(lzma.FORMAT_ALONE), view, limit),
        "bzip2": lambda: _by_library(bz2.BZ2Decompressor(), view, limit),
        "lz4": lambda: Decoded(*decode_frame(view, limit)),
        "lz4-legacy": lambda: Decoded(*decode_legacy(view, limit)),
    }
    if kind.name not in decoders:
        return None
    try:
        return decoders[kind.name]()
    except EOFError as error:
        raise Truncated(f"its {kind.name} data is damaged: {error}") from error
    except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
        raise Damaged(f"its {kind.name} data is damaged: {error}") from error


def decompress(data: bytes | memoryview, what: str) -> bytes:
    """The whole content.

    Args:
        what: is decompressed, for messages.

    Raises:
        InputError: it is damaged, or decompresses to more than :data:`MAX_DECOMPRESSED`.
        EnvironmentLack: the program that decompresses it is missing.
    """
    kind = recognise(data)
    try:
        decoded = decode(data, MAX_DECOMPRESSED)
    except Damaged as error:
        raise InputError(f"{what} cannot be decompressed: {error}") from error
    if decoded is None:
        assert kind is not None
        if kind.name == "lzo":
            raise InputError(f"{what} is compressed with lzo, which mepof does not decompress")
        return _by_zstd(data, what)
    if decoded.size is None:
        raise InputError(f"{what} decompresses to more than {MAX_DECOMPRESSED >> 20} MiB")
    return decoded.content


def compress(data: bytes | memoryview, name: str) -> bytes:
    """Compress as kbuild does for an image of that format (``scripts/Makefile.lib``).

    Args:
        name: one of :data:`NAMES`.

    Raises:
        InputError: it is not one of these.
        EnvironmentLack: the program that compresses it is missing.
        WorkError: it failed.
    """
    if name not in NAMES:
        raise InputError(
            f"mepof does not compress with {name}, as the kernel in the image is",
            "choose what the boot loader takes, too: --compression gzip",
        )
    if name == "gzip":
        return gzip.compress(data, 9, mtime=0)
    if name == "bzip2":
        return bz2.compress(data, 9)
    if name == "lzma":
        return lzma.compress(data, lzma.FORMAT_ALONE, preset=9)
    if name == "xz":
        # The kernel's own decoder knows no other check, and boot loaders use it too.
        return lzma.compress(data, check=lzma.CHECK_CRC32, preset=9)
    if name == "zstd":
        return _through([find_tool("zstd", "apt-get install zstd"), "-q", "-f", "-19"], data)
    options = ["-l", "-9"] if name == "lz4-legacy" else ["-9"]
    return _through([find_tool("lz4", "apt-get install lz4"), "-q", "-f", *options], data)


def _gzip(view: memoryview, limit: int) -> Decoded:
    decoder = zlib.decompressobj(wbits=31)
    parts = []
    made = at = 0
    pending = b""
    while not decoder.eof and made < limit:
        if not pending:
            pending = bytes(view[at : at + _STEP])
            at += len(pending)
            if not pending:
                raise EOFError("it ends too early")
        part = decoder.decompress(pending, limit - made)
        pending = decoder.unconsumed_tail
        made += len(part)
        parts.append(part)
    return Decoded(b"".join(parts), at - len(decoder.unused_data) if decoder.eof else None)


def _lzma(form: int) -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(form, _MEMORY_BYTES)


def _by_library(decoder: _Decoder, view: memoryview, limit: int) -> Decoded:
    parts = []
    made = at = 0
    while not decoder.eof and made < limit:
        piece = bytes(view[at : at + _STEP]) if decoder.needs_input else b""
        if decoder.needs_input and not piece:
            raise EOFError("it ends too early")
        at += len(piece)
        part = decoder.decompress(piece, limit - made)
        made += len(part)
        parts.append(part)
    size = at - len(decoder.unused_data) if decoder.eof else None
    return Decoded(b"".join(parts), size)


def _by_zstd(data: bytes | memoryview, what: str) -> bytes:
    argv = [find_tool("zstd", "apt-get install zstd"), "-q", "-f", "-d", "--memory=160MB"]
    try:
        return _through(argv, data)
    except WorkError as error:
        raise InputError(f"{what} cannot be decompressed: {error.message}") from error


def _through(argv: list[str], data: bytes | memoryview) -> bytes:
    """What a program of the form ``OPTIONS INPUT -o OUTPUT`` makes of data."""
    with tempfile.TemporaryDirectory(prefix="mepof-") as directory:
        source, made = Path(directory, "in"), Path(directory, "out")
        source.write_bytes(data)
        output = [source, "-o", made] if "zstd" in Path(argv[0]).name else [source, made]

        def too_large() -> str | None:
            size = made.stat().st_size if made.exists() else 0
            return "its output is too large" if size > MAX_DECOMPRESSED else None

        run([*argv, *output], watch=too_large)
        if (said := too_large()) is not None:
            raise WorkError(said)
        return made.read_bytes()
