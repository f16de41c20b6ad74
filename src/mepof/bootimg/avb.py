"""Android Verified Boot: what it keeps behind an image, and what it makes of a changed one.

The formats are those of ``libavb`` (``avb_footer.h``, ``avb_vbmeta_image.h``,
``avb_*_descriptor.h``), big-endian; what boots and what does not is ``avb_slot_verify.c``.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from typing import Any

from mepof.bootimg.image import Bytes
from mepof.errors import InputError

FOOTER_BYTES = 64
MAX_VBMETA_BYTES = 64 << 10
BLOCK_BYTES = 4096
"""What ``avbtool`` aligns a vbmeta behind an image to."""

MAX_DESCRIPTORS = 256

VBMETA_MAGIC = b"AVB0"
_FOOTER = struct.Struct(">4s2I3Q28x")
_FOOTER_MAGIC = b"AVBf"
_HEADER = struct.Struct(">4s2I2QI9Q2Q2I48s80x")
_HASH = struct.Struct(">Q32s4I60x")
_CHAIN = struct.Struct(">3I64x")
_ALGORITHMS = (
    "none",
    *(f"SHA{digest}_RSA{bits}" for digest in (256, 512) for bits in (2048, 4096, 8192)),
)
_HASHTREE_DISABLED, _VERIFICATION_DISABLED = 1, 2
_TAG_HASH, _TAG_CHAIN = 2, 4


@dataclass(frozen=True)
class Footer:
    """The last 64 bytes of a partition; offsets and sizes are in bytes.

    Attributes:
        image_size: of what was there before AVB's data.
    """

    major: int
    minor: int
    image_size: int
    vbmeta_offset: int
    vbmeta_size: int

    def encode(self) -> bytes:
        """The bytes of the footer."""
        values = (self.major, self.minor, self.image_size, self.vbmeta_offset, self.vbmeta_size)
        return _FOOTER.pack(_FOOTER_MAGIC, *values)


@dataclass(frozen=True)
class HashDescriptor:
    """What a partition's first bytes must hash to.

    Attributes:
        at: where the descriptor's fields begin in the vbmeta.
        size: bytes of the partition that are hashed.
        algorithm: ``sha256`` or ``sha512``, if a boot loader can use it.
        digest: empty if the device keeps it.
    """

    at: int
    partition: str
    size: int
    algorithm: str
    salt: bytes
    digest: bytes

    def matches(self, content: Bytes) -> bool | None:
        """Whether a partition that begins so passes; None if that cannot be known."""
        computed = self.digest_of(content)
        if computed is None or not self.digest or self.size > len(content):
            return None if computed is None or not self.digest else False
        return computed == self.digest

    def digest_of(self, content: Bytes) -> bytes | None:
        """The digest of the hashed part of a partition; None if the algorithm is unknown."""
        if self.algorithm not in ("sha256", "sha512"):
            return None
        digest = hashlib.new(self.algorithm, self.salt)
        digest.update(memoryview(content)[: self.size])
        return digest.digest()


@dataclass(frozen=True)
class Vbmeta:
    """What AVB knows of one or more partitions.

    Attributes:
        algorithm: of the signature; ``none`` without one.
        hashes: of partitions.
        chained: partitions that have a vbmeta of their own.
    """

    algorithm: str
    rollback_index: int
    flags: int
    release: str
    hashes: tuple[HashDescriptor, ...]
    chained: tuple[str, ...]

    @property
    def verification_disabled(self) -> bool:
        """Whether the boot loader verifies nothing."""
        return bool(self.flags & _VERIFICATION_DISABLED)

    @property
    def hashtree_disabled(self) -> bool:
        """Whether dm-verity is off."""
        return bool(self.flags & _HASHTREE_DISABLED)


def footer_of(data: Bytes, before: int = 0) -> Footer | None:
    """The footer that a partition ends with; None if it has none that a boot loader would use.

    Args:
        before: bytes of the partition that come before ``data``.
    """
    end = bytes(memoryview(data)[-FOOTER_BYTES:])
    if len(end) < FOOTER_BYTES or not end.startswith(_FOOTER_MAGIC):
        return None
    _, *values = _FOOTER.unpack(end)
    footer = Footer(*values)
    limit = before + len(data) - FOOTER_BYTES
    if (
        footer.major != 1
        or any(end[_FOOTER.size - 28 :])
        or footer.vbmeta_size > MAX_VBMETA_BYTES
        or footer.vbmeta_offset + footer.vbmeta_size > limit
        or footer.image_size > footer.vbmeta_offset
    ):
        return None
    return footer


def parse_vbmeta(data: Bytes, where: str) -> Vbmeta:
    """Read a vbmeta.

    Args:
        where: the file's name, for messages.

    Raises:
        InputError: it is damaged.
    """
    data = bytes(memoryview(data)[:MAX_VBMETA_BYTES])
    if len(data) < _HEADER.size or not data.startswith(VBMETA_MAGIC):
        raise InputError(f"{where}: the vbmeta has no header", _DAMAGED)
    _, major, _, signed, described, algorithm, *areas, rollback, flags, _, release = _unpack_header(
        data
    )
    if major != 1 or algorithm >= len(_ALGORITHMS):
        raise InputError(
            f"{where}: the vbmeta is of version {major}, algorithm {algorithm}", _DAMAGED
        )
    start, size = areas[-2], areas[-1]
    auxiliary = _HEADER.size + signed
    if auxiliary + described > len(data) or start + size > described:
        raise InputError(f"{where}: the vbmeta's blocks do not fit into it", _DAMAGED)
    hashes: list[HashDescriptor] = []
    chained: list[str] = []
    at = auxiliary + start
    end = at + size
    for _ in range(MAX_DESCRIPTORS):
        if end - at < 16:
            break
        tag, following = struct.unpack_from(">2Q", data, at)
        at += 16
        if following % 8 or following > end - at:
            raise InputError(f"{where}: a descriptor of the vbmeta does not fit into it", _DAMAGED)
        body = data[at : at + following]
        if tag == _TAG_HASH:
            hashes.append(_hash_descriptor(body, at, where))
        elif tag == _TAG_CHAIN:
            chained.append(_chained(body, where))
        at += following
    return Vbmeta(
        _ALGORITHMS[algorithm],
        rollback,
        flags,
        release.split(b"\0", 1)[0].decode("ascii", "replace"),
        tuple(hashes),
        tuple(chained),
    )


_DAMAGED = "the image is damaged: copy it again"


def _unpack_header(data: bytes) -> tuple[Any, ...]:
    return _HEADER.unpack_from(data)


def _hash_descriptor(body: bytes, at: int, where: str) -> HashDescriptor:
    if len(body) < _HASH.size:
        raise InputError(f"{where}: a hash descriptor of the vbmeta is too short", _DAMAGED)
    size, algorithm, *lengths, _ = _HASH.unpack_from(body)
    parts = []
    end = _HASH.size
    for length in lengths:
        parts.append(body[end : end + length])
        end += length
    if end > len(body):
        raise InputError(f"{where}: a hash descriptor of the vbmeta is too short", _DAMAGED)
    name, salt, digest = parts
    kind = algorithm.split(b"\0", 1)[0].decode("ascii", "replace")
    return HashDescriptor(at, name.decode("utf-8", "replace"), size, kind, salt, digest)


def _chained(body: bytes, where: str) -> str:
    if len(body) < _CHAIN.size:
        raise InputError(f"{where}: a chain descriptor of the vbmeta is too short", _DAMAGED)
    _, length, _ = _CHAIN.unpack_from(body)
    if _CHAIN.size + length > len(body):
        raise InputError(f"{where}: a chain descriptor of the vbmeta is too short", _DAMAGED)
    return body[_CHAIN.size : _CHAIN.size + length].decode("utf-8", "replace")


def rehashed(vbmeta: bytes, content: Bytes, where: str) -> bytes:
    """A vbmeta without a signature, for other content of the partition.

    A signed one stays as it is: only the owner of the key can sign it again. So does one with
    several hashes, since only one partition is known.

    Args:
        content: what the partition now begins with; all of it is hashed.

    Raises:
        InputError: the vbmeta is damaged.
    """
    described = parse_vbmeta(vbmeta, where)
    if described.algorithm != "none" or len(described.hashes) != 1:
        return vbmeta
    former = described.hashes[0]
    digest = replace(former, size=len(content)).digest_of(content)
    if digest is None or len(digest) != len(former.digest):
        return vbmeta
    head = former.at + _HASH.size + len(former.partition.encode()) + len(former.salt)
    changed = bytearray(vbmeta)
    changed[former.at : former.at + 8] = len(content).to_bytes(8, "big")
    changed[head : head + len(digest)] = digest
    return bytes(changed)


def findings(data: Bytes, content_size: int, where: str) -> tuple[str, ...]:
    """What a boot loader that verifies makes of a boot image: a sentence each.

    Args:
        data: the whole file, as it would be in the partition.
        content_size: bytes of the image in it.
    """
    footer = footer_of(data)
    if footer is None:
        return (
            "no AVB footer: a locked phone with AVB refuses the image; an unlocked one refuses it "
            "if its vbmeta chains to this partition, and boots it with a warning otherwise",
        )
    start = footer.vbmeta_offset
    try:
        vbmeta = parse_vbmeta(memoryview(data)[start : start + footer.vbmeta_size], where)
    except InputError as error:
        return (f"{error.message}: a boot loader with AVB refuses it, also when unlocked",)
    found = [
        f"AVB footer: {footer.image_size} bytes of image, vbmeta at {start:#x}, "
        + ("not signed" if vbmeta.algorithm == "none" else f"signed with {vbmeta.algorithm}")
        + f", rollback index {vbmeta.rollback_index}"
    ]
    if footer.image_size < content_size:
        found.append(f"AVB covers {footer.image_size} bytes of the image's {content_size}")
    for each in vbmeta.hashes:
        found.append(f"`{each.partition}`: {_verdict(vbmeta, each.matches(data))}")
    if not vbmeta.hashes:
        found.append("the vbmeta has no hash of this partition")
    if vbmeta.flags:
        found.append(
            "the vbmeta has flags: if a vbmeta partition chains to it, it is refused, also when "
            "unlocked"
        )
    return tuple(found)


def _verdict(vbmeta: Vbmeta, matches: bool | None) -> str:
    if matches is None:
        return "the hash cannot be checked here"
    if not matches:
        return (
            "the hash does not match: a locked phone refuses the image; an unlocked one boots it "
            "with a warning"
        )
    if vbmeta.algorithm == "none":
        return "the hash matches; a locked phone compares it with that in its vbmeta partition"
    return "the hash matches; a locked phone also checks the key"
