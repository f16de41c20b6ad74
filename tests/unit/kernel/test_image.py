"""Which files can be booted, and what is said about those that cannot."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest
from writers.kernel_image import (
    arm64_image,
    arm_image,
    at,
    bz_image,
    efi_image,
    elf,
    gzipped,
    whole_bz_image,
)

from mepof.errors import InputError
from mepof.kernel.image import HEADER_BYTES, Image, read_image, recognise


def executable(entry: int) -> bytes:
    """The header of an ELF executable for x86-64."""
    return b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQ", 2, 62, 1, entry) + bytes(64)


@pytest.mark.parametrize(
    ("data", "image"),
    [
        (bz_image(), Image("bzImage", "x86-64")),
        (arm64_image(), Image("Image", "arm64")),
        (gzipped(arm64_image() * 1000), Image("Image.gz", "arm64")),
        (arm_image(), Image("zImage", "arm")),
        (executable(0x6000_1F3C), Image("linux", "um")),
    ],
)
def test_images_are_recognised_by_their_headers(tmp_path: Path, data: bytes, image: Image) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    assert read_image(path) == image


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HdrS",
        bytes(HEADER_BYTES),
        at(0, (0x1FE, b"\x55\xaa")),  # a boot sector
        bz_image()[:0x204],
        gzipped(b"text"),
        gzipped(arm64_image())[:12],
        b"\x1f\x8b" + bytes(100),
        gzip.compress(bz_image(), mtime=0),
        executable(0x0100_0000),  # vmlinux of x86-64
        executable(0x40_1000),  # a program
    ],
)
def test_other_bytes_are_not_an_image(data: bytes) -> None:
    assert recognise(data) is None


ARM = arm_image()[:0x28] + struct.pack("<II", 0, 5000) + bytes(5000 - 0x30)


@pytest.mark.parametrize(
    ("whole", "cut"),
    [
        (whole_bz_image(), whole_bz_image()[:9000]),
        (efi_image(), efi_image()[:8000]),
        (ARM, ARM[:4999]),
        (gzipped(efi_image()), gzipped(efi_image())[:-9]),
        (gzipped(efi_image()), gzipped(efi_image()[:8000])),
    ],
)
def test_an_image_whose_end_is_missing_is_refused(tmp_path: Path, whole: bytes, cut: bytes) -> None:
    path = tmp_path / "image"
    path.write_bytes(whole)
    read_image(path)
    path.write_bytes(cut)
    with pytest.raises(InputError, match=r"the end of .*image is missing") as caught:
        read_image(path)
    assert caught.value.remedy == "copy it again from the build"


@pytest.mark.parametrize(
    ("data", "message", "remedy"),
    [
        (b"", "is empty", "bzImage"),
        (elf(62), "is an ELF file", "use the bzImage of the same build, arch/x86/boot/bzImage"),
        (elf(183), "is an ELF file", "use the Image of the same build, arch/arm64/boot/Image"),
        (elf(40), "is an ELF file", "use the zImage of the same build, arch/arm/boot/zImage"),
        (elf(8), "is an ELF file", "name a kernel image"),
        (b"\x7fELF", "is an ELF file", "name a kernel image"),
        (b"root:x:0:0", "is not a bootable kernel image", "bzImage"),
        (b"ANDROID!" + bytes(64), "is an Android boot image", "mepof bootimg unpack"),
    ],
)
def test_what_cannot_be_booted_is_refused_with_the_file_to_use(
    tmp_path: Path, data: bytes, message: str, remedy: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_image(path)
    assert refused.value.message.startswith(f"{path} ")
    assert message in refused.value.message
    assert remedy in (refused.value.remedy or "")


def test_a_directory_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        read_image(tmp_path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_image(tmp_path / "none")
