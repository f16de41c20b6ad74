"""What a file is and holds, in words and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mepof.bootimg import mediatek
from mepof.bootimg.avb import VBMETA_MAGIC, Vbmeta, findings, parse_vbmeta
from mepof.bootimg.compression import Damaged, decode, recognise
from mepof.bootimg.device_tree import table_entries, trees_of
from mepof.bootimg.image import BootImage, Bytes
from mepof.bootimg.kernel import Kernel, describe
from mepof.bootimg.layout import FRAGMENT_TYPES, round_up
from mepof.bootimg.reader import parse
from mepof.bootimg.tail import SAMSUNG
from mepof.bootimg.text import format_os_version

_HEAD_BYTES = 64
_CPIO = (b"070701", b"070702")
_SIGNATURE_1 = b"\x30\x82"


@dataclass(frozen=True)
class Part:
    """A section of an image, or a fragment of its ramdisk.

    Attributes:
        offset: in the file.
        address: that the header has for it; None if it has none.
        what: it is, as far as mepof recognises it.
    """

    name: str
    size: int
    offset: int
    address: int | None
    what: str


@dataclass(frozen=True)
class Summary:
    """What a file is.

    Attributes:
        kind: ``boot``, ``init_boot``, ``vendor_boot``, ``vbmeta`` or ``dtbo``.
        facts: of the header, by the names that people use.
        findings: what a boot loader makes of it, a sentence each.
    """

    kind: str
    size: int
    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...] = ()
    findings: tuple[str, ...] = ()


def summary(data: Bytes, where: str) -> Summary:
    """What a file is and holds.

    Args:
        where: its name, for messages.

    Raises:
        InputError: it is no file that a boot loader reads, or is damaged.
    """
    if memoryview(data)[:4] == VBMETA_MAGIC:
        return _of_vbmeta(parse_vbmeta(data, where), len(data))
    entries = table_entries(data)
    if entries is not None:
        facts = (("device tree overlays", str(entries)),)
        return Summary("dtbo", len(data), facts, (), ("mepof leaves dtbo images as they are",))
    return summary_of(parse(data, where), data, where)


def summary_of(image: BootImage, data: Bytes, where: str) -> Summary:
    """What an image that has been read is and holds.

    Args:
        data: the file.
        where: its name, for messages.
    """
    parts = tuple(_parts(image))
    return Summary(
        kind_of(image), len(data), tuple(_facts(image)), parts, tuple(_findings(image, data, where))
    )


def kind_of(image: BootImage) -> Literal["boot", "init_boot", "vendor_boot"]:
    """The partition that an image is for: ``boot``, ``init_boot`` or ``vendor_boot``."""
    without = image.version >= 3 and not image.section("kernel")
    return "init_boot" if image.kind == "boot" and without else image.kind


def _facts(image: BootImage) -> Iterator[tuple[str, str]]:
    yield "header version", str(image.version)
    yield "page size", str(image.page_size)
    version, level = format_os_version(image.number("os_version"))
    if version:
        yield "Android", version
    if level:
        yield "patch level", level
    if any(image.text("name")):
        yield "name", image.text("name").split(b"\0")[0].decode("utf-8", "backslashreplace")
    yield "command line", image.cmdline.decode("utf-8", "backslashreplace")
    if image.number("tags_address"):
        yield "tags address", f"{image.number('tags_address'):#x}"


def _parts(image: BootImage) -> Iterator[Part]:
    at = round_up(image.layout.size, image.page_size)
    for name in image.layout.sections:
        section = image.section(name)
        if len(section):
            field = f"{name.removeprefix('vendor_')}_address"
            address = image.number(field) if field in image.fields else None
            yield Part(name, len(section), at, address, _what(name, section))
        if name == "vendor_ramdisk":
            yield from _fragments(image, at)
        at += round_up(len(section), image.page_size)


def _fragments(image: BootImage, at: int) -> Iterator[Part]:
    ramdisk = memoryview(image.section("vendor_ramdisk"))
    offset = 0
    for each in image.fragments:
        label = each.name.split(b"\0")[0].decode("utf-8", "backslashreplace")
        known = each.type < len(FRAGMENT_TYPES)
        number = FRAGMENT_TYPES[each.type] if known else f"type {each.type:#x}"
        what = f"{number}, {_what('ramdisk', ramdisk[offset : offset + each.size])}"
        yield Part(f"fragment `{label}`", each.size, at + offset, None, what)
        offset += each.size


def _what(name: str, section: Bytes) -> str:
    """What a section holds, in a few words."""
    if name == "kernel":
        return kernel_words(describe(section))
    header, content = mediatek.split(section)
    return ", ".join(filter(None, (_held(name, content), "header of MediaTek" if header else "")))


def _held(name: str, section: Bytes) -> str:
    """What a section other than the kernel holds, without a vendor's header."""
    if name.endswith("ramdisk"):
        kind = recognise(section)
        head = bytes(memoryview(section)[:_HEAD_BYTES])
        if kind is not None:
            try:
                decoded = decode(section, _HEAD_BYTES)
                head = decoded.content if decoded else b""
            except Damaged:
                return f"damaged {kind.name}"
        inside = "cpio" if head.startswith(_CPIO) else ""
        return " ".join(filter(None, (inside, kind.name if kind else ""))) or "not recognised"
    if name in ("dtb", "second", "dt"):
        trees = trees_of(section)
        if trees:
            return f"{len(trees)} device tree{'s' * (len(trees) > 1)}"
        return "QCDT table" if bytes(section[:4]) == b"QCDT" else ""
    if name == "recovery_dtbo":
        entries = table_entries(section)
        return "" if entries is None else f"{entries} device tree overlays"
    return ""


def kernel_words(kernel: Kernel) -> str:
    """A kernel in a few words."""
    words = [f"{kernel.image.arch} {kernel.image.format}"] if kernel.image else []
    if kernel.compression:
        words.append(kernel.compression)
        if not kernel.head and kernel.compression not in ("zstd", "lzo"):
            words.append("damaged")
    elif not kernel.image:
        words.append("not recognised")
    if kernel.mediatek:
        words.append("header of MediaTek")
    if kernel.tree_sizes:
        count = len(kernel.tree_sizes)
        words.append(f"{count} device tree{'s' * (count > 1)} appended")
    return ", ".join(words)


def _findings(image: BootImage, data: Bytes, where: str) -> Iterator[str]:
    size = len(data) - len(image.tail)
    start = bytes(image.tail[: len(SAMSUNG)])
    if start == SAMSUNG:
        yield "Samsung's mark SEANDROIDENFORCE follows the image; it is kept"
    elif start[:2] == _SIGNATURE_1:
        yield (
            "a signature of Verified Boot 1.0 follows the image: a locked phone refuses the image "
            "once it has changed"
        )
    if image.section("signature"):
        yield (
            "the header's signature is that of a certified generic kernel: boot loaders do not "
            "check it, Android's compatibility tests do"
        )
    yield from findings(data, size, where)


def _of_vbmeta(vbmeta: Vbmeta, size: int) -> Summary:
    facts = [
        ("signature", vbmeta.algorithm),
        ("rollback index", str(vbmeta.rollback_index)),
        ("made by", vbmeta.release),
        ("hashed partitions", ", ".join(each.partition for each in vbmeta.hashes)),
        ("chained partitions", ", ".join(vbmeta.chained)),
    ]
    if vbmeta.verification_disabled:
        said = "verification is disabled: an unlocked phone boots changed images without a check"
    else:
        said = (
            "a locked phone refuses a changed image of these partitions; an unlocked one boots it "
            "with a warning, or without a check after "
            "`fastboot --disable-verity --disable-verification flash vbmeta vbmeta.img`"
        )
    found = [said]
    if vbmeta.hashtree_disabled:
        found.append("dm-verity is disabled")
    return Summary("vbmeta", size, tuple(fact for fact in facts if fact[1]), (), tuple(found))
