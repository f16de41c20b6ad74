"""Logs, as text that can be shown, and the commands beside them."""

from __future__ import annotations

from pathlib import Path

from mepof.report.text import printable

MAX_BYTES = 64 << 10
"""What is shown of a log at once."""


def commands_of(script: Path) -> tuple[str, ...]:
    """The commands that a step ran, from the script beside its log, the first attempt's first."""
    try:
        lines = script.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(printable(line) for line in lines if line.startswith("("))


def tail(log: Path | None) -> str:
    """The end of a log; empty if there is none, or a link."""
    if log is None or log.is_symlink() or not log.is_file():
        return ""
    left_out = max(0, size(log) - MAX_BYTES)
    data = read(log, left_out)
    return readable(data.partition(b"\n")[2] if left_out else data)


def read(log: Path, position: int) -> bytes:
    """At most :data:`MAX_BYTES` from a position; empty if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(position)
            return file.read(MAX_BYTES)
    except OSError:
        return b""


def readable(data: bytes) -> str:
    """The text of a log, with controls made visible."""
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return printable(text, keep="\n\t")


def size(path: Path) -> int:
    """The size of a file in bytes; 0 if it is missing."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
