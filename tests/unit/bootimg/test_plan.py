"""Addresses at which nothing overlaps, and by how much an image does not fit."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from writers.boot_image import arm64_kernel, some, vbmeta, with_footer

from mepof.bootimg.compression import compress
from mepof.bootimg.image import BootImage
from mepof.bootimg.model import Model, read_model
from mepof.bootimg.partition import fit
from mepof.bootimg.plan import Region, plan
from mepof.bootimg.reader import parse
from mepof.errors import InputError

MIB = 1 << 20
MODEL = """\
title = "made up"
source = "nowhere"
compressions = ["gzip", "xz"]
device_tree_growth = 4096

[memory]
start = 0x80000000
size = 0x4000000
reserved = [{ name = "secure", start = 0x81000000, size = 0x200000 }]

[partitions]
boot = 1048576
"""


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """64 MiB from 2 GiB on, 2 MiB of them reserved."""
    path = tmp_path / "model.toml"
    path.write_text(MODEL)
    return read_model(path)


def image(data: bytes, in_memory: int, **addresses: int) -> BootImage:
    """A boot image with a kernel that takes so much memory, at these addresses."""
    made = parse(data, "boot.img").with_sections(kernel=arm64_kernel(in_memory=in_memory))
    defaults = {"kernel": 0x80000000, "ramdisk": 0x82000000, "dtb": 0x83000000}
    fields = {f"{name}_address": at for name, at in {**defaults, **addresses}.items()}
    return replace(made, fields={**made.fields, **fields})


def test_an_image_that_fits_stays(boot_image: bytes, model: Model) -> None:
    found = plan([image(boot_image, 8 * MIB)], model)
    assert (found.problems, found.moved, found.fits) == ((), (), True)


def test_an_instrumented_kernel_that_outgrew_its_space_moves_the_ramdisk(
    boot_image: bytes, model: Model
) -> None:
    plain = image(boot_image, 8 * MIB, ramdisk=0x80F00000)
    assert plan([plain], model).fits
    found = plan([image(boot_image, 15 * MIB + 1, ramdisk=0x80F00000)], model)
    assert found.problems == (
        "the kernel (0x80000000 to 0x80f00001) overlaps the ramdisk (0x80f00000 to 0x80f0138e) "
        "by 1 bytes",
    )
    assert found.moved == ("ramdisk",)
    assert found.kept == {"tags": plain.number("tags_address")}
    assert found.addresses["ramdisk"] == 0x80F01000


def test_a_kernel_that_is_too_large_for_below_the_reserved_memory_goes_above_it(
    boot_image: bytes, model: Model
) -> None:
    found = plan([image(boot_image, 20 * MIB)], model)
    assert found.addresses["kernel"] >= 0x81200000
    assert found.addresses["ramdisk"] == 0x82000000


def test_a_kernel_that_fits_nowhere_says_by_how_much(boot_image: bytes, model: Model) -> None:
    found = plan([image(boot_image, 47 * MIB)], model)
    assert not found.fits
    # Everything else goes below the reserved memory.
    assert found.largest_kernel == 46 * MIB
    assert found.kernel_size == 47 * MIB
    assert plan([image(boot_image, found.largest_kernel)], model).fits
    # What is only in memory stays as large.
    assert found.image_limit == max(found.image_size - MIB, 0)


def test_an_image_with_counters_must_be_smaller_by_what_it_is_too_large_in_memory(
    boot_image: bytes, model: Model
) -> None:
    kernel = arm64_kernel(in_memory=47 * MIB) + bytes(5 * MIB)
    found = plan([image(boot_image, 0).with_sections(kernel=kernel)], model)
    assert found.image_limit == len(kernel) - MIB


def test_an_address_that_arm64_does_not_boot_from_is_named(boot_image: bytes, model: Model) -> None:
    found = plan([image(boot_image, MIB, kernel=0x80080000)], model)
    assert found.problems[0].endswith("is not aligned to 2 MiB")
    assert found.addresses["kernel"] % (2 * MIB) == 0
    old = arm64_kernel(in_memory=MIB, offset=0x80000)
    found = plan([image(boot_image, MIB).with_sections(kernel=old)], model)
    assert found.problems[0].endswith("is not 0x80000 bytes after a multiple of 2 MiB")


def test_a_compressed_kernel_takes_what_it_decompresses_to(boot_image: bytes, model: Model) -> None:
    made = image(boot_image, 0)
    packed = made.with_sections(kernel=compress(arm64_kernel(in_memory=9 * MIB), "xz"))
    assert plan([packed], model).kernel_size == 9 * MIB


def test_images_of_version_4_are_planned_together(boot_image: bytes, model: Model) -> None:
    with pytest.raises(InputError, match="have no addresses"):
        plan([], model)
    vendor = replace(image(boot_image, MIB), sections={})
    with pytest.raises(InputError, match="none of the images has a kernel"):
        plan([vendor], model)


def test_two_images_of_a_kind_are_not_loaded_together(boot_image: bytes, model: Model) -> None:
    with pytest.raises(InputError, match="more than one of the images has a kernel"):
        plan([image(boot_image, MIB)] * 2, model)


@pytest.mark.parametrize("seed", range(40))
def test_planned_addresses_never_overlap(boot_image: bytes, model: Model, seed: int) -> None:
    chance = random.Random(seed)
    addresses = {
        name: 0x80000000 + chance.randrange(0x4000) * 4096 for name in ("kernel", "ramdisk", "dtb")
    }
    made = image(boot_image, chance.randrange(1, 46 * MIB), **addresses)
    made = made.with_sections(ramdisk=some(chance.choice([10, 100_000, 3_000_000])))
    found = plan([made], model)
    if not found.fits:
        assert found.kernel_size > found.largest_kernel
        return
    placed = [replace(each, start=found.addresses[each.name]) for each in found.regions]
    reserved = [Region(e.name, e.start, e.size) for e in model.memory.reserved]
    assert not any(a.overlap(b) for a, b in combinations([*placed, *reserved], 2))
    assert all(model.start <= each.start and each.end <= model.end for each in placed)
    assert found.kernel_size <= found.largest_kernel


def test_an_image_that_is_too_large_for_its_partition_says_what_would_fit(
    boot_image: bytes, model: Model
) -> None:
    kernel = arm64_kernel(300_000) + bytes(1_000_000)
    made = parse(boot_image, "boot.img").with_sections(kernel=kernel)
    found = fit(made, model)
    assert found is not None
    assert found.excess == made.content_size - MIB
    assert set(found.compressions) == {"gzip", "xz"}
    assert all(needed < MIB for needed in found.compressions.values())
    assert found.largest_kernel is not None
    exact = fit(made.with_sections(kernel=bytes(found.largest_kernel)), model)
    more = fit(made.with_sections(kernel=bytes(found.largest_kernel + 1)), model)
    assert exact is not None and more is not None
    assert (exact.excess, more.excess > 0) == (0, True)
    # The kernel is not compressed: it may be as large as the space that there is.
    assert found.image_limit == found.largest_kernel
    assert exact.image_limit is None


def test_an_image_may_grow_as_far_as_its_compression_leaves_room(
    boot_image: bytes, model: Model
) -> None:
    content = arm64_kernel(300_000) + bytes(range(256)) * 60_000
    noise = random.Random(1).randbytes(1_100_000)
    packed = compress(content + noise, "gzip")
    found = fit(parse(boot_image, "boot.img").with_sections(kernel=packed), model)
    assert found is not None
    assert found.excess > 0
    assert found.image_limit is not None and found.largest_kernel is not None
    share = found.largest_kernel / len(packed)
    assert found.image_limit == pytest.approx(share * len(content + noise), rel=1e-6)


def test_a_footer_takes_some_of_the_partition(boot_image: bytes, model: Model) -> None:
    data = with_footer(boot_image, vbmeta(), MIB)
    made = parse(data, "boot.img")
    found = fit(made, model)
    assert found is not None
    assert found.needed == -(-len(boot_image) // 4096) * 4096 + len(vbmeta()) + 64
    assert found.largest_kernel is not None
    exact = fit(made.with_sections(kernel=bytes(found.largest_kernel)), model)
    assert exact is not None
    assert exact.excess == 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("start = 0x80000000", "start = -1", ":7: `memory.start`"),
        ("size = 0x4000000", "size = 0", ":8: `memory.size`"),
        ('"xz"', '"zip"', "unknown compression `zip`"),
        ("boot = ", "boots = ", "unknown key `boots`"),
        ("[memory]", "[memories]", "unknown key `memories`"),
    ],
)
def test_a_wrong_model_is_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "model.toml"
    path.write_text(MODEL.replace(before, after, 1))
    with pytest.raises(InputError, match=message):
        read_model(path)
