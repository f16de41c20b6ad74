"""What a kernel's console says when it goes down."""

from __future__ import annotations

import re
from pathlib import Path

_TAIL_LINES = 12
_PANIC = re.compile(
    r"\bKernel panic - not syncing: .*|\bBUG: .*|\bOops: .*|\bUnable to handle kernel .*"
)
# Of the kernel: in user space it is a bare number.
_WHERE = re.compile(r"\bRIP: [0-9a-f]+:[\w.]+\+0x\S+|\bpc : \S+")
# Who called panic(); frames with a question mark are left over from other calls.
_CALLER = re.compile(r"\bpanic\+0x\S+\s*\n(?:.* \? .*\n)*(?:\[[ .\d]+\])?\s*([\w.]+\+0x\S+)")


def text_of(path: Path) -> str:
    """A console's log; empty where nothing was written."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def panic_in(text: str) -> str | None:
    """The first panic or oops, and where in the kernel it was; None if there was none."""
    panic = _PANIC.search(text)
    if panic is None:
        return None
    # The last lines of the console may begin below these.
    where = _WHERE.search(text, panic.start())
    caller = _CALLER.search(text, panic.start())
    at = where.group(0) if where else f"in {caller.group(1)}" if caller else ""
    return ", ".join(filter(None, (panic.group(0).strip(), at)))


def tail(text: str, most: int = _TAIL_LINES) -> str:
    """The last lines, each on a line of its own below a message."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "".join(f"\n  | {line}" for line in lines[-most:])
