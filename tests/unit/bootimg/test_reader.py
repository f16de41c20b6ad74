"""Reading: damaged images are refused in one line, and whatever is read is written again."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from writers.boot_image import some, vbmeta, with_footer

from mepof.bootimg.directory import packed, unpacked
from mepof.bootimg.image import BootImage, write
from mepof.bootimg.layout import VENDOR
from mepof.bootimg.reader import parse, read_file
from mepof.bootimg.summary import summary
from mepof.errors import InputError


def changed(image: bytes, at: int, form: str, value: int) -> bytes:
    """An image with another number in its header."""
    data = bytearray(image)
    struct.pack_into(form, data, at, value)
    return bytes(data)


def vendor_boot(*sizes: int) -> bytes:
    """A vendor_boot 4 with a table of fragments of these sizes, whatever the ramdisk has."""
    layout = VENDOR[4]
    table = b""
    offset = 0
    for size in sizes:
        table += struct.pack("<3I32s16I", size, offset, 1, b"", *[0] * 16)
        offset += size
    fields = {name: 0 if form in "IQ" else b"" for name, form in layout.fields}
    head = layout.encode(
        {
            **fields,
            "magic": b"VNDRBOOT",
            "header_version": 4,
            "page_size": 2048,
            "header_size": layout.size,
            "vendor_ramdisk_size": 3000,
            "ramdisk_table_size": len(table),
            "ramdisk_table_entries": len(sizes),
            "ramdisk_table_entry_size": 108,
        }
    )
    return head.ljust(4096, b"\0") + some(3000).ljust(4096, b"\0") + table.ljust(2048, b"\0")


def again(image: BootImage, directory: Path) -> bytes:
    """What a directory of the image packs to."""
    directory.mkdir()
    for name, data in unpacked(image).files.items():
        (directory / name).write_bytes(data)
    return write(packed(directory))


@pytest.mark.parametrize(
    ("at", "form", "value", "message"),
    [
        (0, "<Q", 0, "is not an Android boot image"),
        (8, "<I", 0x7FFFFFFF, "the kernel has 2147483647 bytes from 0x800, and the file ends"),
        (16, "<I", 10_000_000, "the ramdisk has 10000000 bytes"),
        (36, "<I", 0, "the page size is 0"),
        (36, "<I", 4000, "the page size is 4000"),
        (36, "<I", 1 << 31, "the page size is 2147483648"),
        (40, "<I", 5, "has a boot header of version 5"),
        (1644, "<I", 1648, "has 1648 bytes, but one of version 2 has 1660"),
    ],
)
def test_a_damaged_header_is_named(
    boot_image: bytes, at: int, form: str, value: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse(changed(boot_image, at, form, value), "boot.img")


def test_a_truncated_header_is_named(boot_image: bytes) -> None:
    with pytest.raises(InputError, match="ends within its header: it has 100 bytes of 1660"):
        parse(boot_image[:100], "boot.img")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2000, 2000), "have 4000 bytes together, and the ramdisk 3000"),
        ((1000,), "have 1000 bytes together"),
    ],
)
def test_fragments_must_cover_the_ramdisk(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(vendor_boot(*sizes), "vendor_boot.img")


def test_fragments_must_follow_each_other() -> None:
    image = vendor_boot(1000, 2000)
    with pytest.raises(InputError, match="fragment 1 begins at 0x5 of the ramdisk"):
        parse(changed(image, 8192 + 108 + 4, "<I", 5), "vendor_boot.img")


def test_a_table_of_another_entry_size_is_refused() -> None:
    image = changed(vendor_boot(1000, 2000), 2112 + 8, "<I", 112)
    with pytest.raises(InputError, match="216 bytes, and 2 entries of 112"):
        parse(image, "vendor_boot.img")


def test_a_directory_is_not_an_image(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        read_file(tmp_path)


def test_an_image_with_quirks_comes_back_as_it_was(boot_image: bytes, tmp_path: Path) -> None:
    """Another id, text behind the end of texts, paddings with data, a mark behind the image."""
    data = bytearray(boot_image)
    data[576:608] = b"i" * 32
    data[64 + 100 : 64 + 104] = b"more"
    data[1700:1710] = b"in padding"
    kernel_end = 2048 + int.from_bytes(data[8:12], "little")
    data[kernel_end : kernel_end + 4] = b"more"
    quirky = bytes(data) + b"SEANDROIDENFORCE" + bytes(5000)
    image = parse(quirky, "boot.img")
    assert write(image) == quirky
    assert again(image, tmp_path / "again") == quirky
    assert "SEANDROIDENFORCE" in summary(quirky, "boot.img").findings[0]


def test_an_image_without_its_last_padding_comes_back_as_it_was(
    boot_image: bytes, tmp_path: Path
) -> None:
    short = boot_image.rstrip(b"\0")
    image = parse(short, "boot.img")
    assert write(image) == short
    assert again(image, tmp_path / "again") == short


@pytest.mark.parametrize("kept", [1, 2])
def test_an_image_without_its_last_sections_comes_back_as_it_was(
    boot_image: bytes, tmp_path: Path, kept: int
) -> None:
    image = parse(boot_image, "boot.img")
    empty = dict.fromkeys(image.layout.sections[kept:], b"")
    fewer = replace(image.with_sections(kernel=b"kernel", **empty), tail=b"")
    for end in (b"", b"\0\0end"):
        short = write(fewer).rstrip(b"\0") + end
        assert again(parse(short, "boot.img"), tmp_path / f"again{len(end)}") == short


def test_a_section_of_another_size_does_not_move_the_next_off_its_page(
    boot_image: bytes,
) -> None:
    data = bytearray(boot_image)
    kernel_end = 2048 + int.from_bytes(data[8:12], "little")
    data[kernel_end : kernel_end + 4] = b"more"
    image = parse(bytes(data), "boot.img")
    kernel = image.section("kernel")[:-100]
    other = replace(image, sections={**image.sections, "kernel": kernel})
    assert parse(write(other), "boot.img").section("ramdisk") == image.section("ramdisk")


def test_a_device_tree_table_before_header_versions_is_a_section(
    boot_image: bytes, tmp_path: Path
) -> None:
    """Qualcomm's: its size is where the version is now."""
    table = b"QCDT" + some(9000)
    layout_0 = changed(boot_image[:2048], 40, "<I", len(table))
    sizes = struct.unpack_from("<I4xI", layout_0, 8)
    end = 2048 + sum(-(-size // 2048) * 2048 for size in sizes)
    data = layout_0[:1632].ljust(2048, b"\0") + boot_image[2048:end] + table.ljust(10240, b"\0")
    image = parse(data, "boot.img")
    assert image.section("dt") == table
    assert again(image, tmp_path / "again") == data
    assert "QCDT table" in {part.what for part in summary(data, "boot.img").parts}


def test_fragments_come_back_as_they_were(tmp_path: Path) -> None:
    data = vendor_boot(1000, 0, 2000)
    image = parse(data, "vendor_boot.img")
    assert [each.size for each in image.fragments] == [1000, 0, 2000]
    assert again(image, tmp_path / "again") == data


def test_a_partition_comes_back_as_it_was(boot_image: bytes, tmp_path: Path) -> None:
    data = with_footer(boot_image, vbmeta(algorithm=2), 1 << 20)
    image = parse(data, "boot.img")
    assert again(image, tmp_path / "again") == data


@given(st.data())
def test_mutated_images_are_refused_or_written_as_they_were(data: st.DataObject) -> None:
    seeds = (vendor_boot(1000, 2000), with_footer(vendor_boot(3000), vbmeta(), 20480))
    mutated = bytearray(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 64) | st.integers(2100, 2130) | st.integers(8192, 8500))
        mutated[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    try:
        image = parse(bytes(mutated), "mutated")
        summary(bytes(mutated), "mutated")
    except InputError:
        return
    assert write(image) == mutated
