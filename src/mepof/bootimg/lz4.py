"""Decoding lz4: the legacy format, which kbuild uses, and frames.

After ``doc/lz4_Block_format.md`` and ``doc/lz4_Frame_format.md`` of lz4. Checksums are not checked.
"""

from __future__ import annotations

LEGACY_BLOCK_BYTES = 8 << 20
_MAGIC_BYTES = 4
_MIN_MATCH = 4


def decode_legacy(data: memoryview, limit: int) -> tuple[bytes, int | None]:
    """Decode a legacy stream, whose blocks end with the data or with what cannot be one.

    Args:
        limit: bytes of content after which to stop.

    Returns:
        The content, and the bytes that the stream takes; None if the limit came before its end.

    Raises:
        ValueError: the data is damaged.
        EOFError: its end is missing.
    """
    out = bytearray()
    at = _MAGIC_BYTES
    # The longest block that cannot be compressed: LZ4_COMPRESSBOUND.
    longest = LEGACY_BLOCK_BYTES + LEGACY_BLOCK_BYTES // 255 + 16
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        # The last word may be the content's size, which kbuild appends.
        if size > longest or size == 0 or at + 4 == len(data):
            break
        if len(out) >= limit:
            return bytes(out[:limit]), None
        if at + 4 + size > len(data):
            raise EOFError("it ends too early")
        start = len(out)
        _block(data[at + 4 : at + 4 + size], out, start, min(start + LEGACY_BLOCK_BYTES, limit))
        at += 4 + size
    if at == _MAGIC_BYTES:
        raise EOFError("it ends too early")
    return bytes(out), at


def decode_frame(data: memoryview, limit: int) -> tuple[bytes, int | None]:
    """Decode a frame, as :func:`decode_legacy` does.

    Raises:
        ValueError: the data is damaged.
        EOFError: its end is missing.
    """
    if len(data) < 7:
        raise EOFError("it ends too early")
    flags, descriptor = data[4], data[5]
    code = descriptor >> 4 & 7
    if flags >> 6 != 1 or code < 4:
        raise ValueError("its header is not one of a frame")
    largest = 1 << (8 + 2 * code)
    linked = not flags & 0x20
    at = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    out = bytearray()
    while True:
        head = data[at : at + 4]
        if len(head) < 4:
            raise EOFError("it ends too early")
        at += 4
        word = int.from_bytes(head, "little")
        if word == 0:
            at += 4 if flags & 0x04 else 0
            if at > len(data):
                raise EOFError("it ends too early")
            return bytes(out[:limit]), at
        if len(out) >= limit:
            return bytes(out[:limit]), None
        size = word & 0x7FFFFFFF
        block = data[at : at + size]
        if size > largest:
            raise ValueError("a block does not fit")
        if len(block) < size:
            raise EOFError("it ends too early")
        start = len(out)
        if word >> 31:
            out += block
        else:
            _block(block, out, 0 if linked else start, min(start + largest, limit))
        at += size + (4 if flags & 0x10 else 0)


def _block(block: memoryview, out: bytearray, first: int, limit: int) -> None:
    """Append what a block decodes to.

    Args:
        first: of ``out``, that a match may refer to.
        limit: the length of ``out`` after which to stop.
    """
    data = bytes(block)
    at, size = 0, len(data)
    try:
        while at < size:
            token = data[at]
            at += 1
            length = token >> 4
            if length == 15:
                while (more := data[at]) == 255:
                    length += 255
                    at += 1
                length += more
                at += 1
            if length:
                if at + length > size:
                    raise ValueError("a literal ends too late")
                out += data[at : at + length]
                at += length
            if at == size:
                return
            distance = data[at] | data[at + 1] << 8
            at += 2
            length = token & 15
            if length == 15:
                while (more := data[at]) == 255:
                    length += 255
                    at += 1
                length += more
                at += 1
            length += _MIN_MATCH
            start = len(out) - distance
            if distance == 0 or start < first:
                raise ValueError("a match begins too early")
            if len(out) + length > limit:
                length = max(limit - len(out), 0)
            if distance >= length:
                out += out[start : start + length]
            else:
                out += (out[start:] * (length // distance + 1))[:length]
            if len(out) >= limit:
                return
    except IndexError:
        raise ValueError("a block ends too early") from None
