"""A file that is not a boot image is named for what it is, with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel, device_tree
from writers.kernel_image import bz_image

from mepof.bootimg import reader
from mepof.errors import InputError

# What `lz4 -B6 --content-size` makes of `ANDROID!`, as in the archives of Odin.
ELF = b"\x7fELF\2\1\1\0" + bytes(60)
ODIN = bytes.fromhex("04224d186c4008000000000000003808000080414e44524f49442100000000dfd96f06")


def fit_image() -> bytes:
    """As `mkimage -f auto` begins one."""
    tree = bytearray(device_tree(300, 1))
    tree[80:92] = b"\0\0\0\1images\0\0"
    return bytes(tree)


@pytest.mark.parametrize(
    ("data", "what", "remedy"),
    [
        (b"PK\x03\x04", "a zip archive", "payload.bin"),
        (b"CrAU\0\0", "the payload of an OTA", "payload dumper"),
        (b"\x3a\xff\x26\xed\x01\0", "a sparse image", "simg2img"),
        (bytes(257) + b"ustar  \0", "a tar archive", "tar -xf"),
        (ODIN, "a boot image compressed with lz4", "lz4 -d"),
        (b"DHTB\x01\0", "a file signed for Unisoc", "512 bytes"),
        (arm64_kernel(), "a kernel without a boot image", "--kernel"),
        (bz_image(), "a kernel without a boot image", "--kernel"),
        (gzip.compress(b"ANDROID!", mtime=0), "a boot image compressed with gzip", "gzip -d"),
        (gzip.compress(b"text", mtime=0), "data compressed with gzip", "gzip -d"),
        (gzip.compress(b"", mtime=0)[:12], "data compressed with gzip", "decompress it"),
        (
            gzip.compress(arm64_kernel(), mtime=0),
            "a kernel without a boot image, compressed with gzip",
            "--kernel",
        ),
        (
            gzip.compress(b"07070100", mtime=0),
            "a ramdisk without a boot image, compressed with gzip",
            "--ramdisk",
        ),
        (gzip.compress(ELF, mtime=0), "an ELF file, compressed with gzip", "--kernel"),
        (b"", "an empty file", "boot.img"),
        (bytes(4096) + b"gDla\x34\0\0\0", "super.img", "factory image"),
        (b"gDla\x34\0\0\0", "super_empty.img", "factory image"),
        (b"AVB0\0\0\0\1", "a vbmeta image", "bootimg show"),
        (b"\xd7\xb7\xab\x1e", "a dtbo image", "bootimg show"),
        (b"\x27\x05\x19\x56", "a uImage of U-Boot", "mkimage"),
        (fit_image(), "a FIT image of U-Boot", "mkimage"),
        (device_tree(300, 1), "a device tree", "--dtb"),
        (b"\x7fELF\1\1\1\x61" + bytes(60), "a boot image of Sony's", "unpackelf"),
        (ELF, "an ELF file", "Image"),
        (bytes(1080) + b"\x53\xef", r"a file system \(ext4\)", "factory image"),
        (bytes(1024) + b"\xe2\xe1\xf5\xe0", r"a file system \(erofs\)", "factory image"),
        (bytes(1024) + b"\x10\x20\xf5\xf2", r"a file system \(f2fs\)", "factory image"),
        (bytes(512) + b"EFI PART", "a whole disk", "fdisk -l"),
        (b"MZ" + bytes(600), "a program of UEFI", "package"),
        (bytes(1024) + b"ANDROID!", "a file whose boot image begins at byte 1024", "tail -c +1025"),
    ],
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
