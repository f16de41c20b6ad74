"""A boot image with the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel

from mepof import arch
from mepof.bootimg.compression import compress
from mepof.bootimg.image import write
from mepof.bootimg.reader import parse
from mepof.errors import InputError
from mepof.package.bootimg import FORMAT

from .kernels import kernel


def test_a_new_image_has_the_kernel_alone(tmp_path: Path) -> None:
    FORMAT.write(kernel(tmp_path), None, tmp_path / "boot.img")
    image = parse((tmp_path / "boot.img").read_bytes(), "boot.img")
    assert (image.kind, image.version) == ("boot", 4)
    assert bytes(image.section("kernel")) == b"image of 6.12.95-mepof-opt"
    assert not image.section("ramdisk")


def test_the_kernel_takes_the_place_of_that_in_an_image(tmp_path: Path) -> None:
    old = image(tmp_path / "old.img", kernel=arm64_kernel(), ramdisk=b"070701")
    new = kernel(tmp_path)
    new.image.write_bytes(arm64_kernel(200_000))
    FORMAT.write(new, old, tmp_path / "new.img")
    made = parse((tmp_path / "new.img").read_bytes(), "new.img")
    assert bytes(made.section("kernel")) == arm64_kernel(200_000)
    assert bytes(made.section("ramdisk")) == b"070701"


@pytest.mark.parametrize("content", [b"", b"ANDROID!", b"no image at all"])
def test_a_file_that_is_no_image_is_refused_before_anything_is_built(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "boot.img").write_bytes(content)
    with pytest.raises(InputError):
        FORMAT.check(arch.get("arm64"), tmp_path / "boot.img")


def image(path: Path, **sections: bytes) -> Path:
    """A boot image of version 4."""
    FORMAT.write(kernel(path.parent), None, path)
    path.write_bytes(write(parse(path.read_bytes(), "").with_sections(**sections)))
    return path


def test_a_kernel_that_is_a_process_has_no_boot_image() -> None:
    with pytest.raises(InputError, match="no boot loader starts a kernel for um"):
        FORMAT.check(arch.get("um"), None)


def test_an_image_without_a_kernel_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    given = image(tmp_path / "init_boot.img", kernel=b"", ramdisk=b"070701")
    with pytest.raises(InputError, match=r"init_boot.img has no kernel") as caught:
        FORMAT.check(arch.get("arm64"), given)
    assert "name the phone's boot.img" in str(caught.value.remedy)
    with pytest.raises(InputError, match="has no kernel"):
        FORMAT.write(kernel(tmp_path), given, tmp_path / "opt.img")


def test_an_image_for_another_architecture_is_refused_before_anything_is_built(
    tmp_path: Path,
) -> None:
    given = image(tmp_path / "boot.img", kernel=arm64_kernel())
    FORMAT.check(arch.get("arm64"), given)
    with pytest.raises(InputError, match="has a kernel for arm64, not for x86-64"):
        FORMAT.check(arch.get("x86-64"), given)


@pytest.mark.parametrize(
    ("kernel", "why", "remedy"),
    [
        (
            b"\x89LZO\0\r\n\x1a\n" + bytes(100),
            "is compressed with lzo, and mepof does not compress so",
            "--compression gzip",
        ),
        (b"UNCOMPRESSED_IMG" + arm64_kernel(), "begins like none that mepof knows", "by hand"),
        (
            compress(arm64_kernel(), "gzip") + b"signed by the vendor",
            "20 bytes behind the kernel in .*boot.img",
            "by hand",
        ),
    ],
)
def test_a_kernel_that_no_other_can_replace_is_refused_before_anything_is_built(
    tmp_path: Path, kernel: bytes, why: str, remedy: str
) -> None:
    given = image(tmp_path / "boot.img", kernel=kernel)
    with pytest.raises(InputError, match=why) as caught:
        FORMAT.check(arch.get("arm64"), given)
    assert remedy in str(caught.value.remedy)
