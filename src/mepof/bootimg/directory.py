"""A boot image as a directory: a description that people edit, and a file for each part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mepof.bootimg import mediatek
from mepof.bootimg.avb import Footer
from mepof.bootimg.description import (
    FRAGMENT_NAME_BYTES,
    NAME_BYTES,
    Description,
    TailFiles,
    field_bytes,
    header_fields,
)
from mepof.bootimg.image import (
    BootImage,
    Bytes,
    Fragment,
    pages_of,
    split_cmdline,
)
from mepof.bootimg.kernel import describe
from mepof.bootimg.layout import FRAGMENT_TYPES
from mepof.bootimg.reader import read_file
from mepof.bootimg.tail import Tail, tail_of, with_tail
from mepof.bootimg.text import format_os_version, readable
from mepof.described import read_described
from mepof.errors import InputError

DESCRIPTION = "bootimg.toml"
"""The description's name in the directory."""


@dataclass(frozen=True)
class Unpacked:
    """A directory that has not been written: the content of each file by its name."""

    files: Mapping[str, Bytes]


def unpacked(image: BootImage) -> Unpacked:
    """An image as a directory from which :func:`packed` makes the same bytes."""
    files: dict[str, Bytes] = {}
    lines = dict(_head(image))
    names: dict[str, str] = {}
    for name in image.layout.sections:
        data = image.section(name)
        if not data or name == "ramdisk_table" or image.fragments:
            continue
        files[name] = data
        names[name] = name
    if image.fragments:
        names = {n: n for n in ("dtb", "bootconfig") if image.section(n)}
        files = {n: image.section(n) for n in names}
    if "kernel" in names:
        kernel = describe(image.section("kernel"))
        parts: dict[str, Bytes] = {
            "kernel": kernel.payload,
            "kernel_header": kernel.mediatek,
            "kernel_dtb": kernel.trees,
        }
        for name, data in parts.items():
            if data or name == "kernel":
                files[name] = data
                names[name] = name
    tables = [("files", {name: json.dumps(file) for name, file in names.items()})]
    at = 0
    for number, each in enumerate(image.fragments):
        file = f"vendor_ramdisk{number:02}"
        files[file] = memoryview(image.section("vendor_ramdisk"))[at : at + each.size]
        at += each.size
        tables.append(("[fragments]", dict(_fragment(each, file))))
    for name, padding in image.paddings.items():
        files[f"{name}.padding"] = padding
    if image.paddings:
        tables.append(
            ("paddings", {name: json.dumps(f"{name}.padding") for name in image.paddings})
        )
    if image.tail:
        _unpack_tail(image, files, lines, tables)
    text = ["# What `mepof bootimg pack` makes of the files beside this one."]
    text += [f"{key} = {value}" for key, value in lines.items()]
    for table, rows in tables:
        if rows:
            text += ["", f"[{table}]", *(f"{key} = {value}" for key, value in rows.items())]
    files[DESCRIPTION] = ("\n".join(text) + "\n").encode()
    return Unpacked(files)


def _unpack_tail(
    image: BootImage,
    files: dict[str, Bytes],
    lines: dict[str, str],
    tables: list[tuple[str, dict[str, str]]],
) -> None:
    pages = pages_of(image)
    size = sum(map(len, pages))
    tail = tail_of(image.tail, size)
    if tail is None:
        files["tail"] = image.tail
        lines["raw_tail"] = '"tail"'
        return
    digest = hashlib.sha256()
    for page in pages:
        digest.update(page)
    rows = {"partition_size": str(tail.size), "content_sha256": json.dumps(digest.hexdigest())}
    if tail.extra:
        files["extra"] = tail.extra
        rows["extra"] = '"extra"'
    if tail.footer is not None:
        files["vbmeta"] = tail.vbmeta
        rows["vbmeta"] = '"vbmeta"'
        rows["footer_minor"] = str(tail.footer.minor)
        rows["vbmeta_offset"] = f"{tail.footer.vbmeta_offset:#x}"
        rows["image_size"] = str(tail.footer.image_size)
    tables.append(("tail", rows))


def _head(image: BootImage) -> Iterator[tuple[str, str]]:
    """The keys of the description that are fields of the header."""
    yield "kind", json.dumps(image.kind)
    yield "header_version", str(image.version)
    if "page_size" in image.fields:
        yield "page_size", str(image.page_size)
    for name, _ in image.layout.fields:
        if name.endswith("_address"):
            yield name, f"{image.number(name):#010x}"
    version, level = format_os_version(image.number("os_version"))
    if version:
        yield "os_version", json.dumps(version)
    if level:
        yield "os_patch_level", json.dumps(level)
    if "name" in image.fields:
        yield _text("name", image.text("name"), NAME_BYTES)
    raw = image.text("cmdline") + image.text("extra_cmdline")
    text = image.cmdline
    fields = split_cmdline(text, image.layout)
    if fields is not None and b"".join(fields.values()) == raw and readable(text) is not None:
        yield "cmdline", _quoted(text.decode())
    else:
        yield "cmdline_hex", json.dumps(raw.hex())
    for name in ("id", "reserved"):
        if any(image.text(name)) or (name == "id" and "id" in image.fields):
            yield name, json.dumps(image.text(name).hex())
    if "recovery_dtbo_offset" in image.fields:
        yield "recovery_dtbo_offset", f"{image.number('recovery_dtbo_offset'):#x}"


def _fragment(fragment: Fragment, file: str) -> Iterator[tuple[str, str]]:
    yield "file", json.dumps(file)
    yield _text("name", fragment.name, FRAGMENT_NAME_BYTES)
    known = fragment.type < len(FRAGMENT_TYPES)
    yield "type", json.dumps(FRAGMENT_TYPES[fragment.type]) if known else str(fragment.type)
    if any(fragment.board):
        yield "board_id", "[" + ", ".join(f"{word:#x}" for word in fragment.board) + "]"


def _text(name: str, raw: bytes, size: int) -> tuple[str, str]:
    text = readable(raw)
    if text is None or len(text.encode()) >= size:
        return f"{name}_hex", json.dumps(raw.hex())
    return name, _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _part(path: Path) -> memoryview:
    return read_file(path, f"{DESCRIPTION} names it: unpack the image again")


def packed(directory: Path) -> BootImage:
    """The image that a directory describes.

    Raises:
        InputError: the description or a file is missing or wrong, or the image is too large for
            the partition.
    """
    path = directory / DESCRIPTION
    if not path.is_file():
        raise InputError(
            f"{directory} has no {DESCRIPTION}", "name a directory of `mepof bootimg unpack`"
        )
    described = read_described(path, Description, "boot image")
    layout = described.layout
    sections: dict[str, Bytes] = {
        name: _part(directory / described.files[name]) if name in described.files else b""
        for name in layout.sections
        if name != "ramdisk_table"
    }
    fragments = []
    parts = []
    for each in described.fragments:
        data = _part(directory / each.file)
        parts.append(data)
        label = field_bytes(each.name, each.name_hex, FRAGMENT_NAME_BYTES, path)
        number = FRAGMENT_TYPES.index(each.type) if isinstance(each.type, str) else each.type
        fragments.append(Fragment(len(data), number, label, each.board_id))
    if parts:
        sections["vendor_ramdisk"] = b"".join(parts)
    if described.files.keys() & {"kernel_header", "kernel_dtb"}:
        around = {
            name: _part(directory / described.files[name])
            for name in ("kernel_header", "kernel_dtb")
            if name in described.files
        }
        header = bytes(around.get("kernel_header", b""))
        sections["kernel"] = mediatek.joined(
            header, sections["kernel"], around.get("kernel_dtb", b"")
        )
    paddings: dict[str, bytes] = {
        name: bytes(_part(directory / file)) for name, file in described.paddings.items()
    }
    image = BootImage(
        layout, header_fields(described, sections, path), sections, tuple(fragments), paddings
    )
    if described.raw_tail is not None:
        return replace(image, tail=_part(directory / described.raw_tail))
    return image if described.tail is None else _with_tail(image, described.tail, directory)


def _with_tail(image: BootImage, files: TailFiles, directory: Path) -> BootImage:
    def read(name: str | None) -> bytes:
        return bytes(_part(directory / name)) if name is not None else b""

    vbmeta = read(files.vbmeta)
    footer = None
    if files.vbmeta is not None:
        offsets = (files.image_size, files.vbmeta_offset, len(vbmeta))
        footer = Footer(1, files.footer_minor, *offsets)
    tail = Tail(files.partition_size, read(files.extra), vbmeta, footer)
    pages = b"".join(pages_of(image))
    if hashlib.sha256(pages).hexdigest() == files.content_sha256:
        return replace(image, tail=tail.encode(len(pages)))
    return with_tail(image, tail, str(directory))
