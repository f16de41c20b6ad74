from __future__ import annotations

from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel, some

from mepof.bootimg.model import Model, read_model
from mepof.errors import InputError
from mepof.phone.bootloader import Bootloader
from mepof.phone.factory import HEADER_VERSIONS, images
from mepof.phone.state import DEFAULT_MODEL, Storage, limits_of, model_of


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


def test_a_phone_describes_itself_as_plan_reads_it(tmp_path: Path) -> None:
    for arch in ("arm64", "x86-64"):
        file = tmp_path / f"{arch}.toml"
        file.write_text(limits_of(model_of(arch)))
        assert read_model(file) == model_of(arch)
