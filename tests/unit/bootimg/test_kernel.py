"""The kernel in an image: what it consists of, and another in its place."""

from __future__ import annotations

import shutil
import struct

import pytest
from writers.boot_image import arm64_kernel, device_tree, some
from writers.kernel_image import arm_image, bz_image, whole_bz_image

from mepof.bootimg.compression import compress, decompress
from mepof.bootimg.device_tree import appended, table_entries, trees_of
from mepof.bootimg.kernel import describe, replaced
from mepof.bootimg.summary import kernel_words
from mepof.errors import InputError

TREES = device_tree(600, 1) + device_tree(2000, 2)


def mediatek(payload: bytes) -> bytes:
    """A section with MediaTek's header."""
    return struct.pack("<II32s472s", 0x58881688, len(payload), b"KERNEL", b"\xff" * 472) + payload


def test_a_compressed_kernel_with_device_trees_is_taken_apart() -> None:
    payload = compress(arm64_kernel(), "gzip")
    kernel = describe(payload + TREES)
    assert kernel.payload == payload
    assert kernel.tree_sizes == (600, 2000)
    assert kernel.trees == TREES
    assert kernel_words(kernel) == "arm64 Image, gzip, 2 device trees appended"
    assert kernel.memory is not None
    assert kernel.memory.size == 0x40_0000


@pytest.mark.parametrize("name", ["xz", "lzma", "bzip2", "gzip"])
def test_a_kernel_is_recognised_through_its_compression(name: str) -> None:
    assert describe(compress(arm64_kernel(), name)).image == describe(arm64_kernel()).image


def test_a_new_kernel_is_packed_as_the_old_one_was() -> None:
    old = compress(arm64_kernel(), "xz") + TREES
    new = arm64_kernel(400_000, 0x50_0000)
    kernel = describe(replaced(old, new, None, "new"))
    assert kernel.compression == "xz"
    assert kernel.trees == TREES
    assert decompress(kernel.payload, "new") == new


def test_a_new_kernel_takes_its_own_device_trees_along() -> None:
    own = device_tree(700, 9)
    made = replaced(arm64_kernel() + TREES, arm64_kernel(200_000) + own, None, "new")
    assert made == arm64_kernel(200_000) + own


def test_the_compression_of_a_new_kernel_can_be_chosen() -> None:
    old = compress(arm64_kernel(), "gzip")
    assert replaced(old, arm64_kernel(), "none", "new") == arm64_kernel()
    assert replaced(old, old, "xz", "new") == compress(arm64_kernel(), "xz")


def test_a_compressed_kernel_stays_as_it_is_if_nothing_else_is_asked_for() -> None:
    odd = compress(arm64_kernel(), "gzip")[:-8] + b"crc+size"
    assert replaced(compress(b"old", "gzip"), odd, None, "new") == odd


def test_mediatek_s_header_states_the_new_size() -> None:
    made = replaced(mediatek(arm64_kernel()), arm64_kernel(200_000), None, "new")
    assert made == mediatek(arm64_kernel(200_000))
    assert "header of MediaTek" in kernel_words(describe(made))


def test_a_kernel_for_another_architecture_is_refused() -> None:
    with pytest.raises(InputError, match="new is a kernel for x86-64, and the one in the image"):
        replaced(arm64_kernel(), bz_image(), None, "new")


@pytest.mark.parametrize("new", [b"\x7fELF" + bytes(9000), b"ANDROID!" + bytes(9000), b"text"])
def test_what_no_boot_loader_starts_does_not_replace_a_kernel(new: bytes) -> None:
    with pytest.raises(InputError, match="new is not a kernel that a boot loader starts"):
        replaced(arm64_kernel(), new, None, "new")
    assert replaced(b"old", new, "none", "new") == new


def test_what_is_given_in_place_of_a_kernel_is_named() -> None:
    with pytest.raises(InputError, match="as the one in the image is, but a uImage of U-Boot"):
        replaced(arm64_kernel(), b"\x27\x05\x19\x56" + bytes(60), None, "new")


@pytest.mark.parametrize("new", [b"", device_tree(700, 9)])
@pytest.mark.parametrize("old", [arm64_kernel(), compress(arm64_kernel(), "gzip") + TREES])
def test_nothing_and_device_trees_alone_do_not_replace_a_kernel(old: bytes, new: bytes) -> None:
    with pytest.raises(InputError, match="new is not a kernel that a boot loader starts"):
        replaced(old, new, None, "new")
    with pytest.raises(InputError, match="new has no kernel"):
        replaced(b"old", new, "none", "new")


@pytest.mark.parametrize("name", ["gzip", "xz", "lzma", "bzip2"])
def test_a_kernel_whose_compressed_data_ends_too_early_is_refused(name: str) -> None:
    old = compress(arm64_kernel(), name)
    with pytest.raises(InputError, match="the end of new is missing"):
        replaced(old, old[: len(old) // 2], None, "new")


def test_a_kernel_with_fewer_bytes_than_its_header_says_is_refused() -> None:
    whole = whole_bz_image()
    assert replaced(bz_image(), whole, None, "new") == whole
    with pytest.raises(InputError, match="the end of new is missing: it has 9999 bytes") as caught:
        replaced(bz_image(), whole[:9999], None, "new")
    assert caught.value.remedy == "copy it again from the build"
    with pytest.raises(InputError, match="the end of new is missing"):
        replaced(compress(bz_image(), "gzip"), compress(whole[:9999], "xz"), None, "new")


def test_a_kernel_that_is_damaged_where_it_begins_is_refused() -> None:
    with pytest.raises(InputError, match="new cannot be decompressed"):
        replaced(arm64_kernel(), b"\x1f\x8b\x08" + bytes(100), None, "new")


def test_a_kernel_is_not_compressed_otherwise_than_one_in_lzo() -> None:
    old = b"\x89LZO\0\r\n\x1a\n" + bytes(100)
    with pytest.raises(InputError, match="mepof does not compress with lzo") as caught:
        replaced(old, arm64_kernel(), None, "new")
    assert "--compression" in str(caught.value.remedy)
    assert replaced(old, arm64_kernel(), "none", "new") == arm64_kernel()


def test_what_a_kernel_takes_in_memory_comes_from_its_header() -> None:
    zimage = bytearray(arm_image())
    zimage[0x28:0x30] = struct.pack("<II", 0x100, 0x90100)
    arm = describe(bytes(zimage)).memory
    assert arm is not None
    assert (arm.size, arm.decompresses) == (0x90000, True)
    x86 = bytearray(bz_image())
    struct.pack_into("<H", x86, 0x206, 0x20F)
    struct.pack_into("<I", x86, 0x230, 0x200000)
    struct.pack_into("<I", x86, 0x260, 0x1234000)
    memory = describe(bytes(x86)).memory
    assert memory is not None
    assert (memory.size, memory.alignment) == (0x1234000, 0x200000)
    assert describe(some(1000)).memory is None


@pytest.mark.parametrize("end", [TREES, TREES + bytes(5000), device_tree(600) + bytes(1 << 20)])
def test_zeros_behind_device_trees_are_kept(end: bytes) -> None:
    old = compress(arm64_kernel(), "gzip") + end
    assert describe(old).trees == end
    assert describe(replaced(old, arm64_kernel(200_000), None, "new")).trees == end


@pytest.mark.parametrize(
    "old",
    [
        b"UNCOMPRESSED_IMG" + struct.pack("<I", 300_000) + arm64_kernel(),
        mediatek(arm64_kernel())[:-100],
        some(5000),
    ],
)
def test_a_kernel_of_no_known_form_is_not_replaced(old: bytes) -> None:
    with pytest.raises(InputError, match="begins like none that mepof knows") as caught:
        replaced(old, arm64_kernel(), None, "new")
    assert "unpack" in str(caught.value.remedy)
    assert replaced(old, arm64_kernel(), "none", "new") == arm64_kernel()


@pytest.mark.parametrize("compression", [None, "none"])
def test_data_behind_a_compressed_kernel_is_not_lost(compression: str | None) -> None:
    old = compress(arm64_kernel(), "gzip") + b"a vendor's" + bytes(100)
    with pytest.raises(InputError, match="10 bytes behind the kernel in the image are neither"):
        replaced(old, arm64_kernel(), compression, "new")


@pytest.mark.parametrize("name", ["xz", "lzma", "bzip2"])
@pytest.mark.parametrize("kernel", [arm64_kernel(), arm64_kernel(0x40000)])
def test_the_size_behind_a_compressed_kernel_is_not_missed(name: str, kernel: bytes) -> None:
    old = compress(kernel, name) + struct.pack("<I", len(kernel))
    assert replaced(old, arm64_kernel(), None, "new") == compress(arm64_kernel(), name)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_a_kernel_in_zstd_is_looked_into() -> None:
    old = compress(arm64_kernel(), "zstd")
    with pytest.raises(InputError, match="new is not a kernel that a boot loader starts"):
        replaced(old, b"\x7fELF" + bytes(9000), None, "new")
    with pytest.raises(InputError, match="new is not a kernel that a boot loader starts"):
        replaced(arm64_kernel(), compress(b"\x7fELF" + bytes(9000), "zstd"), None, "new")
    with pytest.raises(InputError, match="new is a kernel for x86-64"):
        replaced(old, compress(bz_image(), "zstd"), None, "new")
    assert replaced(old, old, None, "new") == old


def test_device_trees_within_a_kernel_are_not_appended() -> None:
    kernel = arm64_kernel() + device_tree() + some(10)
    assert appended(kernel).sizes == ()


def test_device_trees_across_a_step_of_the_search_are_found() -> None:
    kernel = some((1 << 20) - 2)
    assert appended(kernel + TREES).sizes == (600, 2000)


def test_damaged_device_trees_are_not_taken_for_some() -> None:
    tree = bytearray(device_tree())
    tree[8:12] = b"\xff" * 4
    assert trees_of(bytes(tree)) == ()
    assert trees_of(TREES) == (600, 2000)


def test_a_table_of_overlays_is_recognised() -> None:
    table = struct.pack(">8I", 0xD7B7AB1E, 96, 32, 32, 2, 32, 2048, 0) + bytes(64)
    assert table_entries(table) == 2
    assert table_entries(table[:90]) is None
