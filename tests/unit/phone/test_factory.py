from __future__ import annotations

from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel, some

from mepof.bootimg.model import Model
from mepof.errors import InputError
from mepof.phone.bootloader import Bootloader
from mepof.phone.factory import HEADER_VERSIONS, images
from mepof.phone.state import DEFAULT_MODEL, Storage


@pytest.mark.parametrize("version", HEADER_VERSIONS)
def test_a_new_phone_of_each_header_version_starts(tmp_path: Path, version: int) -> None:
    made = images(arm64_kernel(), some(5000), version, DEFAULT_MODEL)
    assert ("init_boot" in made) == (version == 4)
    storage = Storage(tmp_path, DEFAULT_MODEL)
    for name, data in made.items():
        storage.write(f"{name}_a", data)
    storage.save(storage.load().model_copy(update={"unlocked": True}))
    screen: list[str] = []
    loader = Bootloader(storage, DEFAULT_MODEL, screen.append, arch="arm64")
    started = loader.restart()
    assert started.loaded is not None, screen
    assert started.loaded.kernel == arm64_kernel()
    assert some(5000) in started.loaded.ramdisk


def test_a_kernel_that_does_not_fit_into_the_partition_is_refused() -> None:
    small = DEFAULT_MODEL.model_dump() | {"partitions": {"boot": 4096}}
    with pytest.raises(InputError, match=r"boot image has \d+ bytes, and the partition 4096"):
        images(arm64_kernel(), some(5000), 2, Model.model_validate(small))
