"""A file that is not a boot image is named for what it is, with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel
from writers.kernel_image import bz_image

from mepof.bootimg import reader
from mepof.errors import InputError


@pytest.mark.parametrize(
    ("data", "what", "remedy"),
    [
        (b"PK\x03\x04", "a zip archive", "payload.bin"),
        (b"CrAU\0\0", "the payload of an OTA", "payload dumper"),
        (b"\x3a\xff\x26\xed\x01\0", "a sparse image", "simg2img"),
        (bytes(257) + b"ustar  \0", "a tar archive", "tar -xf"),
        (b"DHTB\x01\0", "signed for Unisoc", "512 bytes"),
        (arm64_kernel(), "a kernel without a boot image", "--kernel"),
        (bz_image(), "a kernel without a boot image", "--kernel"),
        (gzip.compress(b"ANDROID!", mtime=0), "data compressed with gzip", "decompress it"),
    ],
    ids=["zip", "ota", "sparse", "tar", "dhtb", "arm64", "x86", "gzip"],
)
def test_it_is_named(data: bytes, what: str, remedy: str) -> None:
    with pytest.raises(InputError, match=f"x is not an Android boot image, but {what}") as caught:
        reader.parse(data, "x")
    assert remedy in str(caught.value.remedy)


def test_it_is_named_however_large_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 1024)
    factory = tmp_path / "factory.zip"
    factory.write_bytes(b"PK\x03\x04" + bytes(2048))
    with pytest.raises(InputError, match="is a zip archive"):
        reader.read_file(factory)
    factory.write_bytes(bytes(2048))
    with pytest.raises(InputError, match="is larger than"):
        reader.read_file(factory)
