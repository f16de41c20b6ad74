"""A boot image with the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
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
    FORMAT.write(kernel(tmp_path, "6.1.1"), None, tmp_path / "old.img")
    FORMAT.write(kernel(tmp_path), tmp_path / "old.img", tmp_path / "new.img")
    image = parse((tmp_path / "new.img").read_bytes(), "new.img")
    assert bytes(image.section("kernel")) == b"image of 6.12.95-mepof-opt"


@pytest.mark.parametrize("content", [b"", b"ANDROID!", b"no image at all"])
def test_a_file_that_is_no_image_is_refused_before_anything_is_built(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "boot.img").write_bytes(content)
    with pytest.raises(InputError):
        FORMAT.check(arch.get("arm64"), tmp_path / "boot.img")
