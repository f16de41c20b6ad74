"""Kernels of arm64 whose blocks cannot be placed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.kernel import kconfig
from mepof.kernel.landing_pads import check_placed

OFF = "# CONFIG_ARM64_BTI_KERNEL is not set"


@pytest.mark.parametrize(
    ("lines", "arch", "sound"),
    [
        ("", "arm64", False),
        ("CONFIG_ARM64_BTI_KERNEL=y", "arm64", False),
        (OFF, "arm64", True),
        ("# base: allnoconfig", "arm64", True),
        ("# base: allnoconfig\nCONFIG_ARM64_BTI_KERNEL=y", "arm64", False),
        ("", "x86-64", True),
    ],
)
def test_blocks_of_a_kernel_with_landing_pads_are_not_placed(
    tmp_path: Path, lines: str, arch: str, sound: bool
) -> None:
    file = tmp_path / "my.config"
    file.write_text(f"{lines}\n")
    fragments = kconfig.merge([file])
    if sound:
        check_placed(fragments, arch)
        return
    with pytest.raises(InputError, match="an arm64 kernel with BTI") as caught:
        check_placed(fragments, arch)
    assert caught.value.remedy == f"set a configuration with `{OFF}`"
