"""Kernel source trees, and their releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.kernel import source

HEAD = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n"


@pytest.mark.parametrize("text", ["", "VERSION = six\n", "VERSION = 6\nPATCHLEVEL = 12\n"])
def test_a_makefile_without_a_version_is_not_a_kernels(tmp_path: Path, text: str) -> None:
    (tmp_path / "Makefile").write_text(text)
    with pytest.raises(InputError, match="its Makefile does not state VERSION"):
        source.version_of(tmp_path)


def test_releases_are_ordered_by_number_not_by_text() -> None:
    version = source.KernelVersion(6, 12, 3)
    assert version.at_least(6, 9) and version.at_least(6, 12) and version.at_least(5, 99)
    assert not version.at_least(6, 13) and not version.at_least(7, 0)


def test_a_candidate_is_before_the_next_one_and_before_the_release(tmp_path: Path) -> None:
    head = "VERSION = 6\nPATCHLEVEL = 13\nSUBLEVEL = 0\nEXTRAVERSION ={}\nNAME = x\n"
    found = []
    for extra in ("", " -rc10", " -rc4", " -rc3", " -vendor-rc2"):
        (tmp_path / "Makefile").write_text(head.format(extra))
        found.append(source.version_of(tmp_path))
    assert [str(each) for each in sorted(found)] == [
        *("6.13.0-rc3", "6.13.0-rc4", "6.13.0-rc10"),
        *("6.13.0", "6.13.0"),
    ]
    assert len({*found}) == 4
    assert min(found).at_least(6, 13) and not min(found).at_least(6, 14)


def test_headers_are_not_a_kernels_source(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("Kbuild", "scripts/Makefile.build"):
        (tmp_path / name).touch()
    (tmp_path / "Makefile").write_text(HEAD)
    with pytest.raises(InputError, match="linux-headers has the headers of a kernel alone"):
        source.check_kernel(tmp_path, "linux-headers")
    (tmp_path / "init").mkdir()
    (tmp_path / "init/main.c").touch()
    source.check_kernel(tmp_path, "linux-headers")


def test_a_tree_with_the_line_ends_of_windows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Kbuild").touch()
    (tmp_path / "Makefile").write_bytes(HEAD.replace("\n", "\r\n").encode())
    with pytest.raises(InputError, match="line ends of Windows") as caught:
        source.check_kernel(tmp_path, tmp_path)
    assert "core.autocrlf=false" in str(caught.value.remedy)
