"""Fields of a header as people write them."""

from __future__ import annotations

import re

_VERSION = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?(?:\.(\d{1,3}))?")
_PATCH_LEVEL = re.compile(r"(\d{4})-(\d{2})(?:-\d{2})?")


def format_os_version(value: int) -> tuple[str, str]:
    """Version and patch level of Android in a header's ``os_version``; empty for zero."""
    version, level = value >> 11, value & 0x7FF
    return (
        f"{version >> 14}.{version >> 7 & 127}.{version & 127}" if version else "",
        f"{2000 + (level >> 4)}-{level & 15:02}" if level else "",
    )


def parse_os_version(version: str, level: str) -> int:
    """A header's ``os_version``: 7 bits for each part and for the year, 4 for the month.

    Raises:
        ValueError: a part does not fit.
    """
    value = 0
    if version:
        match = _VERSION.fullmatch(version)
        parts = [int(part or 0) for part in match.groups()] if match else [128]
        if max(parts) > 127:
            raise ValueError(f"`{version}` is not a version such as 11.0.0")
        value = parts[0] << 14 | parts[1] << 7 | parts[2]
    year = month = 0
    if level:
        match = _PATCH_LEVEL.fullmatch(level)
        year, month = (int(match[1]) - 2000, int(match[2])) if match else (-1, 0)
        if not 0 <= year < 128 or month > 15:
            raise ValueError(f"`{level}` is not a patch level such as 2021-05")
    return value << 11 | year << 4 | month


def readable(data: bytes) -> str | None:
    """The text of a field that ends with zeros only; None if it has other bytes."""
    try:
        text = data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None
