"""What boot images consist of: kernels, device trees, Android Verified Boot's data."""

from __future__ import annotations

import hashlib
import random
import struct
from dataclasses import replace

from mepof.bootimg.image import BootImage, write
from mepof.bootimg.layout import BOOT
from mepof.bootimg.reader import parse
from writers.kernel_image import at

_FAR = {"kernel_address": 0x40000000, "ramdisk_address": 0x48000000, "tags_address": 0x4A000000}


def some(size: int, seed: int = 0) -> bytes:
    """Bytes that do not compress; the same for the same arguments."""
    return random.Random(seed).randbytes(size)


def arm64_kernel(size: int = 300_000, in_memory: int = 0x40_0000, offset: int = 0) -> bytes:
    """An Image of arm64 that states how much memory it takes."""
    head = at(0, (8, struct.pack("<QQQ", offset, in_memory, 0xA)), (0x38, b"ARM\x64"))
    return head + some(size - len(head) - 1000) + bytes(1000)


def device_tree(size: int = 512, seed: int = 0) -> bytes:
    """A flattened device tree of version 17 with one empty node, filled up with a string."""
    nodes = struct.pack(">4I", 1, 0, 2, 9)
    strings = size - 40 - 16 - len(nodes)
    header = (0xD00DFEED, size, 56, 56 + len(nodes), 40, 17, 16, 0, strings, len(nodes))
    text = some(strings, seed).replace(b"\xd0", b"\0")
    return struct.pack(">10I", *header) + bytes(16) + nodes + text


def hash_descriptor(partition: str, content: bytes, salt: bytes = b"salt") -> bytes:
    """AVB's descriptor of what a partition begins with."""
    digest = hashlib.sha256(salt + content).digest()
    name = partition.encode()
    body = struct.pack(">Q32s4I60x", len(content), b"sha256", len(name), len(salt), len(digest), 0)
    body += name + salt + digest
    body += bytes(-len(body) % 8)
    return struct.pack(">2Q", 2, len(body)) + body


def chain_descriptor(partition: str, key: bytes = b"key") -> bytes:
    """AVB's descriptor of a partition that has a vbmeta of its own."""
    name = partition.encode()
    body = struct.pack(">3I64x", 1, len(name), len(key)) + name + key
    body += bytes(-len(body) % 8)
    return struct.pack(">2Q", 4, len(body)) + body


def vbmeta(*descriptors: bytes, algorithm: int = 0, flags: int = 0, rollback: int = 0) -> bytes:
    """A vbmeta; if it has an algorithm, the signature is not one."""
    described = b"".join(descriptors)
    auxiliary = described + bytes(-len(described) % 64)
    signature = b"s" * 64 if algorithm else b""
    areas = (0, 0, 0, 0, 0, 0, 0, 0, 0, len(described))
    head = struct.pack(
        ">4s2I2QI9Q2Q2I48s80x",
        b"AVB0",
        1,
        0,
        len(signature),
        len(auxiliary),
        algorithm,
        *areas,
        rollback,
        flags,
        0,
        b"avbtool 1.3.0",
    )
    return head + signature + auxiliary


def with_footer(content: bytes, meta: bytes, partition_size: int) -> bytes:
    """A partition as ``avbtool add_hash_footer`` leaves it."""
    start = -(-len(content) // 4096) * 4096
    footer = struct.pack(">4s2I3Q28x", b"AVBf", 1, 0, len(content), start, len(meta))
    body = content.ljust(start, b"\0") + meta
    return body.ljust(partition_size - len(footer), b"\0") + footer


def boot_image(**addresses: int) -> bytes:
    """A boot image of version 0 with its parts at these addresses."""
    names = [name for name, _ in BOOT[0].fields if name.endswith("_address")]
    empty = parse(write(_empty(names)), "boot.img")
    sections = {"kernel": arm64_kernel(), "ramdisk": some(5000)}
    fields = {**empty.fields, **_FAR, **addresses}
    return write(replace(empty.with_sections(**sections), fields=fields))


def _empty(names: list[str]) -> BootImage:
    texts = dict.fromkeys(("name", "cmdline", "extra_cmdline"), b"")
    numbers = {"os_version": 0, "page_size": 2048, **dict.fromkeys(names, 0)}
    return BootImage(BOOT[0], {**texts, **numbers}, {})
