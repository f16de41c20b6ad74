"""Android Verified Boot: what is recognised, what is said, and what happens to it in packing."""

from __future__ import annotations

from pathlib import Path

import pytest
from writers.boot_image import chain_descriptor, hash_descriptor, some, vbmeta, with_footer

from mepof.bootimg.avb import footer_of, parse_vbmeta, rehashed
from mepof.bootimg.image import write
from mepof.bootimg.reader import parse
from mepof.bootimg.summary import summary
from mepof.bootimg.tail import SAMSUNG, tail_of, with_changes, with_tail
from mepof.errors import InputError

PARTITION = 1 << 20


def repacked(data: bytes, kernel: bytes) -> bytes:
    """The partition with another kernel in it."""
    image = parse(data, "boot.img")
    tail = tail_of(image.tail, image.content_size)
    assert tail is not None
    return write(with_tail(image.with_sections(kernel=kernel), tail, "boot.img"))


def test_a_matching_hash_is_said(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image), algorithm=2, rollback=7)
    found = summary(with_footer(boot_image, meta, PARTITION), "boot.img").findings
    assert "signed with SHA256_RSA4096, rollback index 7" in found[0]
    assert found[1] == "`boot`: the hash matches; a locked phone also checks the key"


def test_a_changed_image_is_refused_by_locked_phones(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image), algorithm=2)
    data = repacked(with_footer(boot_image, meta, PARTITION), some(1000))
    found = summary(data, "boot.img").findings
    assert "a locked phone refuses the image; an unlocked one boots it" in found[1]


def test_an_image_that_grows_takes_its_footer_along(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image), algorithm=2)
    data = repacked(with_footer(boot_image, meta, PARTITION), some(600_000))
    assert len(data) == PARTITION
    footer = footer_of(data)
    assert footer is not None
    assert footer.image_size == parse(data, "boot.img").content_size
    assert footer.vbmeta_offset % 4096 == 0
    assert data[footer.vbmeta_offset :][: len(meta)] == meta


def test_a_vbmeta_without_a_signature_gets_the_new_hash(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image))
    data = repacked(with_footer(boot_image, meta, PARTITION), some(1000))
    assert "the hash matches" in summary(data, "boot.img").findings[1]


@pytest.mark.parametrize("mark", [b"", b"mark", b"mark" + bytes(3 << 20) + b"end"])
@pytest.mark.parametrize("zeros", [0, 1, 1 << 20, (2 << 20) + 5])
def test_what_follows_an_image_is_kept(mark: bytes, zeros: int) -> None:
    tail = tail_of(mark + bytes(zeros), 4096)
    assert tail is not None
    assert (tail.extra, tail.encode(4096)) == (mark, mark + bytes(zeros))


def test_data_between_vbmeta_and_footer_cannot_be_moved(boot_image: bytes) -> None:
    data = bytearray(with_footer(boot_image, vbmeta(), PARTITION))
    data[-100] = 1
    image = parse(bytes(data), "boot.img")
    assert tail_of(image.tail, image.content_size) is None
    assert write(image) == bytes(data)


def test_a_signed_vbmeta_stays_as_it_is(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image), algorithm=1)
    assert rehashed(meta, b"other", "boot.img") == meta


def test_an_image_that_no_longer_fits_says_by_how_much(boot_image: bytes) -> None:
    meta = vbmeta(hash_descriptor("boot", boot_image))
    data = with_footer(boot_image, meta, 512 << 10)
    with pytest.raises(InputError, match=r"has \d+ bytes, \d+ more than the 524288"):
        repacked(data, some(600_000))


@pytest.mark.parametrize("padding", [b"", bytes(100)])
def test_an_image_without_a_footer_grows_with_its_mark(boot_image: bytes, padding: bytes) -> None:
    data = repacked(boot_image + SAMSUNG + padding, some(600_000))
    image = parse(data, "boot.img")
    assert image.section("kernel") == some(600_000)
    assert bytes(image.tail) == SAMSUNG


def test_an_image_that_is_booted_from_memory_may_be_larger_than_its_partition(
    boot_image: bytes,
) -> None:
    data = with_footer(boot_image, vbmeta(hash_descriptor("boot", boot_image)), 512 << 10)
    image = parse(data, "boot.img")
    changed = {"kernel": some(600_000)}
    made = write(with_changes(image, changed, None, Path("boot.img"), for_partition=False))
    assert parse(made, "boot.img").section("kernel") == some(600_000)
    assert "the hash matches" in summary(made, "boot.img").findings[1]
    with pytest.raises(InputError, match="more than the 524288"):
        with_changes(image, changed, None, Path("boot.img"))


def test_an_image_without_a_footer_may_be_refused_when_unlocked(boot_image: bytes) -> None:
    (found,) = summary(boot_image, "boot.img").findings
    assert "an unlocked one refuses it if its vbmeta chains to this partition" in found


def test_a_damaged_vbmeta_is_refused_by_all(boot_image: bytes) -> None:
    data = with_footer(boot_image, bytes(512), PARTITION)
    (found,) = summary(data, "boot.img").findings
    assert "a boot loader with AVB refuses it, also when unlocked" in found


def test_a_footer_that_points_outside_is_none(boot_image: bytes) -> None:
    data = bytearray(with_footer(boot_image, vbmeta(), PARTITION))
    data[-64 + 20 : -64 + 28] = (1 << 40).to_bytes(8, "big")
    assert footer_of(bytes(data)) is None


def test_a_vbmeta_image_is_shown() -> None:
    meta = vbmeta(hash_descriptor("dtbo", b"d"), chain_descriptor("boot"), algorithm=5)
    found = summary(meta.ljust(65536, b"\0"), "vbmeta.img")
    assert found.kind == "vbmeta"
    assert dict(found.facts)["chained partitions"] == "boot"
    assert dict(found.facts)["hashed partitions"] == "dtbo"
    assert "--disable-verification" in found.findings[0]


def test_disabled_verification_is_said() -> None:
    found = summary(vbmeta(flags=3), "vbmeta.img").findings
    assert found[0].startswith("verification is disabled")
    assert found[1] == "dm-verity is disabled"


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (4, 9, "is of version 9"),
        (28, 9, "algorithm 9"),
        (108, 0xFFFF, "blocks do not fit"),
        (256 + 12, 0xFF, "a descriptor of the vbmeta does not fit"),
        (256 + 16 + 40, 0xFFFF, "a hash descriptor of the vbmeta is too short"),
    ],
)
def test_a_damaged_vbmeta_is_named(at: int, value: int, message: str) -> None:
    meta = bytearray(vbmeta(hash_descriptor("boot", b"content")))
    meta[at : at + 4] = value.to_bytes(4, "big")
    with pytest.raises(InputError, match=message):
        parse_vbmeta(bytes(meta), "vbmeta.img")
