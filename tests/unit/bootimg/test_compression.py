"""Kernels compressed in every usual way."""

from __future__ import annotations

import shutil
import struct

import pytest
from writers.boot_image import some

from mepof.bootimg.compression import (
    NAMES,
    Damaged,
    compress,
    decode,
    decompress,
    recognise,
)
from mepof.bootimg.lz4 import decode_frame, decode_legacy
from mepof.errors import InputError

CONTENT = b"the quick brown fox " * 9000 + some(40_000) + bytes(100_000)


def compressed(name: str) -> bytes:
    """The content in a format, if its program is installed."""
    program = {"zstd": "zstd", "lz4": "lz4", "lz4-legacy": "lz4"}.get(name)
    if program and not shutil.which(program):
        pytest.skip(f"{program} is not installed: tools/setup")
    return compress(CONTENT, name)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_compressed_comes_back(name: str) -> None:
    data = compressed(name)
    kind = recognise(data)
    assert kind is not None
    assert kind.name == name
    assert len(data) < len(CONTENT) / 2
    assert decompress(data, "the kernel") == CONTENT


@pytest.mark.parametrize("name", NAMES)
def test_compressing_again_gives_the_same_bytes(name: str) -> None:
    assert compressed(name) == compressed(name)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"zstd"}))
def test_the_beginning_is_decoded_alone(name: str) -> None:
    decoded = decode(compressed(name) + b"behind", 1000)
    assert decoded is not None
    assert decoded.content == CONTENT[:1000]


@pytest.mark.parametrize("name", sorted({*NAMES} - {"zstd"}))
def test_where_a_stream_ends_is_known(name: str) -> None:
    data = compressed(name)
    decoded = decode(data + b"\xd0\x0d\xfe\xedbehind", len(CONTENT) + 1)
    assert decoded is not None
    assert decoded.size == len(data)


@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_kernel_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="the kernel cannot be decompressed"):
        decompress(
            compressed(name)[:-5000] if name != "lz4-legacy" else b"\x02!L\x18", "the kernel"
        )


@pytest.mark.parametrize("name", sorted({*NAMES} - {"zstd"}))
def test_a_damaged_kernel_is_refused(name: str) -> None:
    data = bytearray(compressed(name))
    data[8:40] = b"\xff" * 32
    with pytest.raises(Damaged, match=f"its {name} data is damaged"):
        decode(bytes(data), len(CONTENT) + 1)


def test_lzo_is_recognised_and_refused() -> None:
    data = b"\x89LZO\0\r\n\x1a\n" + bytes(100)
    with pytest.raises(InputError, match="lzo, which mepof does not decompress"):
        decompress(data, "the kernel")


def test_the_size_that_kbuild_appends_is_not_a_block() -> None:
    data = compressed("lz4-legacy")
    content, size = decode_legacy(
        memoryview(data + struct.pack("<I", len(CONTENT))), len(CONTENT) + 1
    )
    assert content == CONTENT
    assert size == len(data)


@pytest.mark.parametrize("flags", [(), ("-BD",), ("--content-size",), ("--no-frame-crc", "-BX")])
def test_frames_of_every_kind_are_decoded(flags: tuple[str, ...]) -> None:
    from mepof.bootimg.compression import _through

    if not shutil.which("lz4"):
        pytest.skip("lz4 is not installed: tools/setup")
    data = _through(["lz4", "-q", "-f", "-B4", *flags], CONTENT)
    assert decode_frame(memoryview(data), len(CONTENT) + 1) == (CONTENT, len(data))
