"""What holds for the packages of every distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.package.contents import headers_beside
from mepof.package.protocol import FORMATS

from .kernels import kernel, package


@pytest.mark.parametrize("name", ["deb", "pkg", "rpm"])
def test_a_kernel_without_headers_has_no_package_of_them(tmp_path: Path, name: str) -> None:
    made = package(tmp_path, kernel(tmp_path, modules=True), FORMATS.get(name))
    assert not headers_beside(made).exists()
